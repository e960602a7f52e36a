#include "ymir/base/leftovers.h"

#include <filesystem>
#include <system_error>
#include <vector>

namespace ymir {

void remove_leftovers(const std::string& folder, std::string_view stem) {
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(stem) && name.find(".tmp") != std::string::npos)
      found.push_back(entry.path());
  }
  for (const auto& path : found) std::filesystem::remove_all(path, ignored);
}

}  // namespace ymir
