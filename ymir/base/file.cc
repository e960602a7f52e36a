#include "ymir/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace ymir {
namespace {

Error failed(const std::string& path, const char* what) { return file_error(path, what, errno); }

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<> sync_path(const std::string& path, int flags) {
  const Descriptor fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (fd.get() < 0) return failed(path, "cannot open");
  if (::fsync(fd.get()) != 0) return failed(path, "cannot sync");
  return Ok{};
}

}  // namespace

Error file_error(const std::string& path, const char* what, int error) {
  const auto code = [error] {
    switch (error) {
      case ENOENT:
        return ErrorCode::kNotFound;
      case EACCES:
      case EPERM:
      case EROFS:
        return ErrorCode::kPermission;
      case ENOSPC:
      case EDQUOT:
        return ErrorCode::kExhausted;
      case ENOTDIR:
      case EISDIR:
      case EEXIST:
      case ENOTEMPTY:
      case ENAMETOOLONG:
      case ELOOP:
        return ErrorCode::kInvalidArgument;
      default:
        return ErrorCode::kUnavailable;
    }
  };
  return {code(), path + ": " + what + ": " + std::strerror(error)};
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  // A named pipe that nobody writes to would hold the caller for ever; a shell's <(...) has a
  // writer and lies in /dev/fd.
  struct stat before{};
  if (::stat(path.c_str(), &before) == 0 && S_ISFIFO(before.st_mode) &&
      !path.starts_with("/dev/fd/") && !path.starts_with("/proc/") && path != "/dev/stdin")
    return Error{ErrorCode::kInvalidArgument, path + ": is a named pipe, not a file"};
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return failed(path, "cannot open");
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return failed(path, "cannot stat");
  if (S_ISDIR(info.st_mode)) return Error{ErrorCode::kInvalidArgument, path + ": is a folder"};
  std::string bytes;
  if (info.st_size > 0)
    bytes.reserve(std::min<std::size_t>(static_cast<std::size_t>(info.st_size), max_bytes));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path, "cannot read");
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(n) > max_bytes)
      return Error{ErrorCode::kExhausted,
                   path + ": larger than " + std::to_string(max_bytes) + " bytes"};
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  // The counter keeps two writers of one path in one process apart.
  static std::atomic<unsigned> counter{0};
  AtomicFile file;
  file.path_ = path;
  struct stat old{};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode))
    return Error{ErrorCode::kInvalidArgument, path + ": is a folder"};
  if (exists && !S_ISREG(old.st_mode)) {  // a rename would put a plain file in its place
    file.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd_ < 0) return failed(path, "cannot open");
    return file;
  }
  file.temporary_ =
      path + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
  file.fd_ = ::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file.fd_ < 0) return failed(file.temporary_, "cannot create");
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<> AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path_, "cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return Ok{};
}

Result<> AtomicFile::commit() {
  if (temporary_.empty()) {
    if (::close(std::exchange(fd_, -1)) != 0) return failed(path_, "cannot write");
    return Ok{};
  }
  if (::fsync(fd_) != 0) return failed(path_, "cannot sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(path_, "cannot rename");
  ::close(std::exchange(fd_, -1));
  const auto slash = path_.rfind('/');
  return sync_folder(slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash));
}

Result<FileLock> FileLock::acquire(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return failed(path, "cannot open");
  FileLock lock(fd);
  while (::flock(fd, LOCK_EX) != 0)
    if (errno != EINTR) return failed(path, "cannot lock");
  return lock;
}

Result<FileLock> FileLock::try_acquire(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return failed(path, "cannot open");
  FileLock lock(fd);
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Error{ErrorCode::kConflict, path + ": is locked"};
    if (errno != EINTR) return failed(path, "cannot lock");
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> write_file(const std::string& path, std::string_view bytes) {
  YMIR_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  YMIR_TRY(file.write(bytes));
  return file.commit();
}

Result<> make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return file_error(path, "cannot create folder", error.value());
  return Ok{};
}

std::string cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string own = variable("YMIR_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/ymir";
  const std::string home = variable("HOME");
  return (home.empty() ? "/tmp" : home) + "/.cache/ymir";
}

Result<> sync_folder(const std::string& path) { return sync_path(path, O_RDONLY | O_DIRECTORY); }

Result<> commit_folder(const std::string& temporary, const std::string& final_path) {
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary, error))
    YMIR_TRY(sync_path(entry.path().string(), O_RDONLY));
  if (error) return file_error(temporary, "cannot list", error.value());
  YMIR_TRY(sync_folder(temporary));
  if (::rename(temporary.c_str(), final_path.c_str()) != 0)
    return failed(final_path, "cannot rename");
  const auto parent = std::filesystem::path(final_path).parent_path().string();
  return sync_folder(parent.empty() ? "." : parent);
}

}  // namespace ymir
