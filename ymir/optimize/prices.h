// Prices: a price per row, laid out so that what a candidate is worth is one look-up.
//
// All money is in scaled utility: utility * scale + 2 * tie noise. The scale is a power of two
// large enough that the noise of a whole plan stays below one quantum of utility, so noise decides
// among equals only. Row prices are even, so every worth is even (Matching needs that).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ymir/optimize/problem.h"

namespace ymir {

class Prices {
 public:
  void reset(const RoundProblem& problem);               // all prices 0
  void set(std::span<const std::int64_t> price_by_row);  // even, 0 <= price <= highest(row)

  std::int64_t scale() const { return scale_; }
  std::span<const Row> rows() const { return rows_; }
  int num_rows() const { return static_cast<int>(rows_.size()); }
  std::span<const std::int64_t> by_row() const { return price_; }
  // At this price nothing that charges the row is worth anything.
  std::int64_t highest(int row) const;
  std::int64_t of_all_capacity() const;  // sum of price * capacity

  std::int64_t scaled(const KeptOption& c) const { return scale_ * c.utility + 2 * c.noise; }
  bool has_extra() const { return has_extra_; }  // rows in which jobs have shares
  std::int64_t plain_worth(const KeptOption& c) const { return scaled(c) - cost_[c.size]; }
  std::int64_t worth(JobIndex job, const KeptOption& c) const {
    const std::int64_t worth = scaled(c) - cost_[c.size];
    return has_extra_ ? worth - 2 * per_gpu_[job] * gpus_[c.size] : worth;
  }
  std::int64_t worth(JobIndex i, JobIndex j, const KeptOption& c) const {
    const std::int64_t worth = scaled(c) - cost_[c.size];
    return has_extra_ ? worth - (per_gpu_[i] + per_gpu_[j]) * gpus_[c.size] : worth;
  }
  std::int64_t worth(const PairEdge& pair, const KeptOption& c) const {
    return worth(pair.first, pair.second, c);
  }
  // Adds what the candidate charges to every row; j == kNoJob: i alone.
  void charge(JobIndex i, JobIndex j, const KeptOption& c, std::int64_t sign,
              std::span<std::int64_t> used) const;

 private:
  const RoundProblem* problem_ = nullptr;
  std::int64_t scale_ = 1;
  std::vector<Row> rows_;
  std::vector<std::int64_t> price_;
  std::vector<std::int64_t> cost_;     // by size: price of its GPUs in the GPU and block rows
  std::vector<std::int64_t> gpus_;     // by size
  std::vector<std::int64_t> per_gpu_;  // by job: price of its sixteenths in the extra rows
  bool has_extra_ = false;
  int first_extra_ = 0;
};

}  // namespace ymir
