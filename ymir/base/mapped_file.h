// MappedFile: a whole file, mapped read-only and shared, so that all processes of a node that map
// it hold one copy. A stray write through it crashes instead of corrupting others. A file that is
// cut while it is mapped kills the reader (SIGBUS): map only files that are replaced by rename.
// Movable; reading is safe from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ymir/base/result.h"

namespace ymir {

class MappedFile {
 public:
  // An empty file gives an empty mapping. kNotFound, kPermission as in file.h.
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ymir
