#include "ymir/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "ymir/base/file.h"

namespace ymir {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto failed = [&path](const char* what, int error) {
    return file_error(path, what, error);
  };
  // A named pipe is refused below, not waited for.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return failed("cannot open", errno);
  struct stat info{};
  const bool known = ::fstat(fd, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    const int error = errno;
    ::close(fd);
    return known ? Error{ErrorCode::kInvalidArgument, path + ": is not a regular file"}
                 : failed("cannot stat", error);
  }
  MappedFile file;
  file.size_ = static_cast<std::size_t>(info.st_size);
  if (file.size_ > 0) {
    void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, fd, 0);
    const int error = errno;
    if (data == MAP_FAILED) {
      file.size_ = 0;
      ::close(fd);
      return failed("cannot map", error);
    }
    file.data_ = static_cast<const std::byte*>(data);
  }
  ::close(fd);
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace ymir
