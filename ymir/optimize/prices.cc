#include "ymir/optimize/prices.h"

#include <algorithm>
#include <bit>

namespace ymir {

void Prices::reset(const RoundProblem& problem) {
  problem_ = &problem;
  const auto enough =
      static_cast<std::uint64_t>(128) * static_cast<unsigned>(problem.num_jobs() + 1);
  scale_ = static_cast<std::int64_t>(std::bit_ceil(enough));
  while (scale_ * problem.max_utility() < (std::int64_t{1} << 30) && problem.max_utility() > 0) {
    scale_ *= 2;
  }
  rows_ = problem.rows();
  first_extra_ = num_rows() - static_cast<int>(problem.extra_rows().size());
  has_extra_ = first_extra_ < num_rows();
  gpus_.clear();
  for (const SizeClass& size : problem.sizes()) gpus_.push_back(size.gpus);
  price_.assign(rows_.size(), 0);
  cost_.assign(gpus_.size(), 0);
  per_gpu_.assign(has_extra_ ? problem.num_jobs() : 0, 0);
}

void Prices::set(std::span<const std::int64_t> price_by_row) {
  price_.assign(price_by_row.begin(), price_by_row.end());
  const std::span<const SizeClass> sizes = problem_->sizes();
  std::fill(cost_.begin(), cost_.end(), 0);
  for (int r = 0; r < first_extra_; ++r) {
    if (price_[r] == 0) continue;
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const bool charged = sizes[s].type == rows_[r].type && sizes[s].gpus >= rows_[r].min_gpus;
      if (charged) cost_[s] += price_[r] * gpus_[s];
    }
  }
  if (!has_extra_) return;
  for (JobIndex j = 0; j < problem_->num_jobs(); ++j) {
    per_gpu_[j] = 0;
    for (const RowShare& share : problem_->shares(j)) {
      per_gpu_[j] += price_[first_extra_ + share.row] * share.sixteenths;
    }
  }
}

std::int64_t Prices::highest(int row) const {
  const std::int64_t price = scale_ * (std::int64_t{problem_->max_utility()} + 1) / rows_[row].unit;
  return (price | 1) + 1;
}

std::int64_t Prices::of_all_capacity() const {
  std::int64_t sum = 0;
  for (int r = 0; r < num_rows(); ++r) sum += price_[r] * rows_[r].capacity;
  return sum;
}

void Prices::charge(JobIndex i, JobIndex j, const KeptOption& c, std::int64_t sign,
                    std::span<std::int64_t> used) const {
  const SizeClass& size = problem_->sizes()[c.size];
  for (int r = 0; r < first_extra_; ++r) {
    if (rows_[r].type == size.type && size.gpus >= rows_[r].min_gpus) used[r] += sign * size.gpus;
  }
  if (!has_extra_) return;
  const auto member = [&](JobIndex job, std::int64_t times) {
    for (const RowShare& share : problem_->shares(job)) {
      used[first_extra_ + share.row] += sign * times * size.gpus * share.sixteenths;
    }
  };
  member(i, j == kNoJob ? 2 : 1);
  if (j != kNoJob) member(j, 1);
}

}  // namespace ymir
