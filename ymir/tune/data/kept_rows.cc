#include "ymir/tune/data/kept_rows.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "ymir/base/file.h"

namespace ymir {
namespace {

// The file: a header, for each row its mark (0: absent), then the numbers of all rows.
struct Header {
  std::array<char, 8> magic{'Y', 'M', 'I', 'R', 'K', 'E', 'P', '1'};
  std::uint64_t rows = 0;
  std::uint64_t numbers = 0;
  bool operator==(const Header&) const = default;
};
constexpr std::uint64_t kMark = std::uint64_t{1} << 32;  // above the checksum

std::uint64_t mark_of(std::span<const float> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return kMark | crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()),
                         bytes.size());
}

// pread or pwrite until all is done.
template <class Bytes, class Move>
bool move_all(const Move& move, int fd, std::uint64_t place, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t n = move(fd, bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    place += static_cast<std::uint64_t>(n);
  }
  return true;
}
bool read_at(int fd, std::uint64_t place, std::span<std::byte> to) {
  return move_all(::pread, fd, place, to);
}
bool write_at(int fd, std::uint64_t place, std::span<const std::byte> from) {
  return move_all(::pwrite, fd, place, from);
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Makes the file if it is new, which two processes may do at once. False: it is another one.
Result<bool> begin(int fd, const std::string& path, const Header& header, std::uint64_t size) {
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return file_error(path, "cannot read", errno);
  if (facts.st_size != 0 && static_cast<std::uint64_t>(facts.st_size) != size) return false;
  Header found{{}, 0, 0};
  const bool is_new = !read_at(fd, 0, bytes_of(found)) || found == Header{{}, 0, 0};
  if (!is_new) return found == header;
  Header mine = header;
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0 || !write_at(fd, 0, bytes_of(mine)))
    return file_error(path, "cannot write", errno);
  return true;
}

}  // namespace

Result<KeptRows> KeptRows::open(const std::string& path, std::span<const std::int64_t> sizes,
                                std::uint64_t max_bytes) {
  std::vector<std::uint64_t> offsets = {0};
  for (const std::int64_t size : sizes)
    offsets.push_back(offsets.back() + static_cast<std::uint64_t>(size));
  Header header;
  header.rows = sizes.size();
  header.numbers = offsets.back();
  // What will never be written takes no place either: its size is what a cache is pruned by.
  const std::uint64_t marks = sizeof header + sizes.size() * sizeof(std::uint64_t);
  const std::uint64_t size = std::clamp(max_bytes, marks, marks + offsets.back() * sizeof(float));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return file_error(path, "cannot open", errno);
    KeptRows kept(fd);
    YMIR_TRY_ASSIGN(const bool is_ours, begin(fd, path, header, size));
    if (!is_ours) {
      ::unlink(path.c_str());
      continue;
    }
    std::error_code error;
    const auto space = std::filesystem::space(path, error);
    struct stat facts{};
    if (::fstat(fd, &facts) != 0) return file_error(path, "cannot read", errno);
    const auto written = static_cast<std::uint64_t>(facts.st_blocks) * 512;
    kept.room_ = error ? max_bytes : std::min(max_bytes, written + space.available / 2);
    kept.verified_.resize(sizes.size());
    kept.offsets_ = std::move(offsets);
    return kept;
  }
  return Error{ErrorCode::kConflict, path + ": is replaced again and again by another process"};
}

KeptRows::~KeptRows() {
  if (fd_ >= 0) ::close(fd_);
}

KeptRows::KeptRows(KeptRows&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      offsets_(std::move(other.offsets_)),
      verified_(std::move(other.verified_)),
      room_(other.room_) {}

std::uint64_t KeptRows::place(std::size_t row) const {
  const std::uint64_t rows = offsets_.size() - 1;
  return sizeof(Header) + rows * sizeof(std::uint64_t) + offsets_[row] * sizeof(float);
}

bool KeptRows::read(std::size_t row, std::span<float> to) {
  YMIR_CHECK(row + 1 < offsets_.size() && to.size() == offsets_[row + 1] - offsets_[row],
             "a row keeps its size");
  std::uint64_t mark = 0;
  if (!read_at(fd_, sizeof(Header) + row * sizeof mark, bytes_of(mark)) || mark == 0) return false;
  if (!read_at(fd_, place(row), std::as_writable_bytes(to))) return false;
  if (!verified_[row]) verified_[row] = mark == mark_of(to);
  return verified_[row];
}

bool KeptRows::write(std::size_t row, std::span<const float> from) {
  YMIR_CHECK(row + 1 < offsets_.size() && from.size() == offsets_[row + 1] - offsets_[row],
             "a row keeps its size");
  if (place(row + 1) > room_) return false;
  std::uint64_t mark = mark_of(from);
  const bool written = write_at(fd_, place(row), std::as_bytes(from)) &&
                       write_at(fd_, sizeof(Header) + row * sizeof mark, bytes_of(mark));
  if (!written) room_ = 0;  // the disk is full, or worse: no more attempts
  return written;
}

}  // namespace ymir
