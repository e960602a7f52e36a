// ExactSum: a sum of doubles without rounding until it is read, so that it does not depend on the
// order or grouping of what was added (batches, ranks). One thread at a time; merge() joins sums of
// several.
#pragma once

#include <vector>

namespace ymir {

class ExactSum {
 public:
  void add(double x);
  void merge(const ExactSum& other);
  // The exact sum rounded once; NaN or infinite when something added was.
  double value() const;

 private:
  std::vector<double> parts_;  // not overlapping, growing: their sum is exact
  double not_finite_ = 0;      // the sum of what was not finite
};

}  // namespace ymir
