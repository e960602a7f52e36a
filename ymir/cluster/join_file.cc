#include "ymir/cluster/join_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/json.h"

namespace ymir {
namespace {

Result<> only_for_me(const std::string& path, mode_t forbidden) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0)
    return Error{ErrorCode::kNotFound, path + ": " + std::strerror(errno)};
  if (info.st_uid != ::geteuid())
    return Error{ErrorCode::kPermission,
                 fmt::format("{}: belongs to user {}, not to {}", path, info.st_uid, ::geteuid())};
  if ((info.st_mode & forbidden) != 0)
    return Error{ErrorCode::kPermission,
                 fmt::format("{}: mode {:04o} lets others in", path, info.st_mode & 07777)};
  return Ok{};
}

}  // namespace

std::string new_secret() {
  std::array<unsigned char, 32> bytes{};
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    YMIR_CHECK(n > 0 || errno == EINTR, "the system gives no randomness");
    if (n > 0) filled += static_cast<std::size_t>(n);
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  return difference == 0;
}

Result<> write_join_file(const std::string& path, const JoinFile& join) {
  const std::string text = canonical(
      {{"address", join.address}, {"place", join.place.value}, {"secret", join.secret}, {"v", 1}});
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return Error{ErrorCode::kUnavailable, path + ": " + std::strerror(errno)};
  const ssize_t n = ::write(fd, text.data(), text.size());
  ::close(fd);
  if (n != static_cast<ssize_t>(text.size()))
    return Error{ErrorCode::kUnavailable, path + ": cannot write"};
  return Ok{};
}

Result<JoinFile> read_join_file(const std::string& path) {
  YMIR_TRY(only_for_me(path, 0077));
  const auto folder = std::filesystem::path(path).parent_path().string();
  YMIR_TRY(only_for_me(folder.empty() ? "." : folder, 0077));
  YMIR_TRY_ASSIGN(const std::string text, read_file(path, 64 * 1024));
  auto json = parse_json(text);
  if (!json) return annotate(json.error(), path);
  JoinFile join;
  try {
    join.address = json->at("address").get<std::string>();
    join.place = PlaceId{json->at("place").get<std::uint64_t>()};
    join.secret = json->at("secret").get<std::string>();
  } catch (const Json::exception&) {
    return Error{ErrorCode::kInvalidArgument, path + ": not a join file"};
  }
  return join;
}

Result<std::string> unix_path(const std::string& address) {
  constexpr std::string_view kScheme = "unix:";
  if (!address.starts_with(kScheme))
    return Error{ErrorCode::kInvalidArgument,
                 "address is not unix:PATH, agents of other machines are not served: " + address};
  std::string path = address.substr(kScheme.size());
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("socket path of {} bytes, at most {}: {}", path.size(),
                             sizeof(sockaddr_un::sun_path) - 1, path)};
  return path;
}

}  // namespace ymir
