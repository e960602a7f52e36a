#include "ymir/tune/data/file_hash.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"

namespace ymir {
namespace {

// Empty when the file can't be asked.
std::string identity(const std::string& path, std::time_t& changed) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {};
  changed = std::max(info.st_mtim.tv_sec, info.st_ctim.tv_sec);
  const auto stamp = [](const timespec& t) { return fmt::format("{}.{:09}", t.tv_sec, t.tv_nsec); };
  return fmt::format("{}-{}-{}-{}-{}", info.st_dev, info.st_ino, info.st_size, stamp(info.st_mtim),
                     stamp(info.st_ctim));
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Result<std::string> remembered_sha256(const std::string& path, const std::string& cache) {
  if (cache.empty()) return sha256_file(path);
  std::time_t changed = 0;
  const std::string before = identity(path, changed);
  if (before.empty()) return Error{ErrorCode::kNotFound, path + ": " + std::strerror(errno)};
  const std::string memory = cache + "/hashes/" + before;
  if (const auto known = read_file(memory, 64); known && is_sha256(*known)) return *known;
  YMIR_TRY_ASSIGN(std::string hash, sha256_file(path));
  // A file that changed while it was read, or within the clock's grain of now, is not remembered.
  const bool settled = std::time(nullptr) - changed >= 2 && identity(path, changed) == before;
  if (settled && make_folders(cache + "/hashes")) static_cast<void>(write_file(memory, hash));
  return hash;
}

Result<std::string> remembered_tree_sha256(const std::string& path, const std::string& cache) {
  namespace fs = std::filesystem;
  constexpr std::size_t kMaxFiles = 1'000'000;
  std::error_code error;
  if (!fs::is_directory(path, error)) return remembered_sha256(path, cache);
  std::vector<std::string> names;
  for (auto it = fs::recursive_directory_iterator(path, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_regular_file(error) && !it->is_symlink(error))
      names.push_back(it->path().lexically_relative(path).string());
    if (names.size() > kMaxFiles)
      return Error{ErrorCode::kExhausted,
                   fmt::format("{} holds more than {} files", path, kMaxFiles)};
  }
  if (error) return Error{ErrorCode::kNotFound, path + ": " + error.message()};
  std::ranges::sort(names);
  std::string listing;
  for (const std::string& name : names) {
    YMIR_TRY_ASSIGN(const std::string hash, remembered_sha256(path + "/" + name, cache));
    listing += hash + " " + name + "\n";
  }
  return sha256(listing);
}

}  // namespace ymir
