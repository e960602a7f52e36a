// RationalCurve: loss(k) = 1 / (a k^2 + b k + c) + d with a, b, c, d >= 0, the family in which a
// loss goes down; a = 0 is the curve of Optimus [EuroSys'18]. Pure, any thread.
#pragma once

#include <optional>

namespace ymir {

struct RationalCurve {
  double a = 0, b = 0, c = 1, d = 0;

  double at(double step) const { return 1 / ((a * step + b) * step + c) + d; }
  // The first step at which the loss is `loss`; none when the curve never gets so low. 0 when it
  // begins there.
  std::optional<double> step_at(double loss) const;
  // Where it falls fastest: 0 unless it starts flat (b^2 < a c).
  double steepest() const;
};

}  // namespace ymir
