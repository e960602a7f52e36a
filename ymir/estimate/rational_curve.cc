#include "ymir/estimate/rational_curve.h"

#include <algorithm>
#include <cmath>

namespace ymir {

std::optional<double> RationalCurve::step_at(double loss) const {
  if (!(loss > d * (1 + 1e-6)) || !(loss > d)) return std::nullopt;
  const double wanted = 1 / (loss - d) - c;  // a k^2 + b k
  if (wanted <= 0) return 0.0;
  if (a <= 0 && b <= 0) return std::nullopt;
  // The root that stays accurate when a is small.
  return 2 * wanted / (b + std::sqrt(b * b + 4 * a * wanted));
}

double RationalCurve::steepest() const {
  if (a <= 0 || b * b >= a * c) return 0;
  return std::max(0.0, (std::sqrt((4 * a * c - b * b) / 3) - b) / (2 * a));
}

}  // namespace ymir
