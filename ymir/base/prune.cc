#include "ymir/base/prune.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace ymir {

namespace fs = std::filesystem;

void prune_folder(const std::string& folder, const std::string& extension,
                  std::uint64_t max_bytes) {
  struct Entry {
    fs::file_time_type used{};
    fs::path path{};
    std::uint64_t bytes = 0;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder, error)) {
    if (item.path().extension() != extension) continue;
    const std::uint64_t bytes = item.file_size(error);
    if (error) continue;  // removed by another process meanwhile
    entries.push_back({item.last_write_time(error), item.path(), bytes});
    total += bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (std::size_t i = 0; i + 1 < entries.size() && total > max_bytes; ++i) {
    fs::remove(entries[i].path, error);
    total -= entries[i].bytes;
  }
}

void mark_used(const std::string& path) {
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
}

}  // namespace ymir
