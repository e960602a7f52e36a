// Interval: a quantity that is not known exactly, as its 10th, 50th and 90th percentile.
#pragma once

namespace ymir {

struct Interval {
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
  static constexpr Interval exactly(double x) { return {x, x, x}; }
  bool operator==(const Interval&) const = default;
};

}  // namespace ymir
