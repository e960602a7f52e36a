// KeptRows: numbers of the rows of a data set, computed once and kept in a file that all workers of
// a node read and add to. A row appears whole or not at all: it is announced by its checksum after
// its numbers, and one that does not match (power was lost in between) counts as absent.
//
// Two processes may write the same row only with the same bits. One thread uses an object.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

class KeptRows {
 public:
  // Opens or makes `path`, in a folder that exists. `sizes`: how many numbers each row has; a file
  // of other sizes, or made with another limit, is replaced. Rows that would end beyond `max_bytes`
  // are never kept, nor those for which more than half of the free disk would be needed.
  static Result<KeptRows> open(const std::string& path, std::span<const std::int64_t> sizes,
                               std::uint64_t max_bytes);
  ~KeptRows();
  KeptRows(KeptRows&& other) noexcept;
  KeptRows& operator=(KeptRows&&) = delete;

  // False, with any values in `to`, when the row is not there.
  bool read(std::size_t row, std::span<float> to);
  // False when there is no room.
  bool write(std::size_t row, std::span<const float> from);

 private:
  explicit KeptRows(int fd) : fd_(fd) {}
  std::uint64_t place(std::size_t row) const;  // in the file, bytes

  int fd_ = -1;
  std::vector<std::uint64_t> offsets_{};  // rows + 1, numbers
  std::vector<bool> verified_{};          // checked against its checksum by this object
  std::uint64_t room_ = 0;                // bytes of the file that may be written
};

}  // namespace ymir
