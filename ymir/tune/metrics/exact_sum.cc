#include "ymir/tune/metrics/exact_sum.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace ymir {

// Each step splits a + b into its rounded value and the exact rest.
void ExactSum::add(double x) {
  if (!std::isfinite(x)) {
    not_finite_ += x;
    return;
  }
  std::size_t kept = 0;
  for (double part : parts_) {
    if (std::fabs(x) < std::fabs(part)) std::swap(x, part);
    const double sum = x + part;
    const double rest = part - (sum - x);
    if (rest != 0) parts_[kept++] = rest;
    x = sum;
  }
  parts_.resize(kept);
  parts_.push_back(x);
}

void ExactSum::merge(const ExactSum& other) {
  not_finite_ += other.not_finite_;
  for (const double part : other.parts_) add(part);
}

double ExactSum::value() const {
  if (std::isnan(not_finite_) || not_finite_ != 0) return not_finite_;
  if (parts_.empty()) return 0;
  // From the largest down until something does not fit any more; ties are then rounded as the whole
  // sum would be.
  std::size_t i = parts_.size() - 1;
  double sum = parts_[i], rest = 0;
  while (i > 0) {
    const double whole = sum, part = parts_[--i];
    sum = whole + part;
    rest = part - (sum - whole);
    if (rest != 0) break;
  }
  if (i > 0 && ((rest < 0 && parts_[i - 1] < 0) || (rest > 0 && parts_[i - 1] > 0))) {
    const double twice = rest * 2, other = sum + twice;
    if (twice == other - sum) sum = other;
  }
  return sum;
}

}  // namespace ymir
