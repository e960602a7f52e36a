#include "ymir/tune/trainer/checkpoint_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/log.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

bool verifies(const std::string& path) {
  const auto text = read_file(path + kCheckpointState);
  if (!text) return false;
  const auto json = parse_json(*text, {.max_bytes = 64u << 20});
  if (!json || !json->contains("tensors_sha256") || !(*json)["tensors_sha256"].is_string())
    return false;
  const auto hash = sha256_file(path + kCheckpointTensors);
  return hash && *hash == (*json)["tensors_sha256"].get<std::string>();
}

}  // namespace

Result<std::string> newest_checkpoint(const std::string& folder) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder + "/checkpoint", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || name.ends_with(".tmp")) continue;
    const std::string number = name.substr(5, name.find('-', 5) - 5);
    if (const auto step = parse_int(number)) found.emplace_back(*step, entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());
  for (const auto& [step, path] : found) {
    if (verifies(path)) return path;
    log::warning("checkpoint is damaged, an older one is looked for: {}", path);
  }
  if (!found.empty())
    return Error{ErrorCode::kCorruption, "no checkpoint here verifies: " + folder + "/checkpoint"};
  return std::string();
}

}  // namespace ymir
