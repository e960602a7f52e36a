// The order of training rows: a pure function of (seed, epoch, index), so that any step can be
// repeated, resumed or skipped to without state and without reading what comes before. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ymir {

// Rows 0..num_rows-1 sorted by (Philox(seed, epoch, row), row): uniformly random, no row twice.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch,
                                       std::uint32_t num_rows);

// The global batches of a task. A batch is a fixed number of rows whatever the number of ranks; the
// last of an epoch holds what is left. One object serves one thread at a time (it remembers the
// epoch it was last asked about).
class BatchOrder {
 public:
  // Needs num_rows >= 1 and batch >= 1.
  BatchOrder(std::uint64_t seed, std::uint32_t num_rows, std::uint32_t batch);

  std::uint32_t batches_per_epoch() const { return (num_rows_ + batch_ - 1) / batch_; }
  // The rows of batch `index` < batches_per_epoch(); valid until the next call.
  std::span<const std::uint32_t> batch(std::uint32_t epoch, std::uint32_t index);

 private:
  std::uint64_t seed_ = 0;
  std::uint32_t num_rows_ = 0;
  std::uint32_t batch_ = 0;
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> order_;  // of epoch_; empty before the first call
};

}  // namespace ymir
