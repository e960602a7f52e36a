#include "ymir/sim/metrics/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ymir {

double quantile(std::vector<double> values, double p) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const double rank = static_cast<double>(values.size() - 1) * p;
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (rank - static_cast<double>(below));
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : sum / static_cast<double>(values.size());
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : std::exp(sum / static_cast<double>(values.size()));
}

double half_width_95(const std::vector<double>& values) {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  // 97.5% quantiles of Student's t by degrees of freedom; beyond the table Cornish-Fisher.
  constexpr std::array<double, 30> kTable = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  const std::size_t degrees = values.size() - 1;
  constexpr double kNormal = 1.959964;
  const double t = degrees <= kTable.size() ? kTable[degrees - 1]
                                            : kNormal + (kNormal * kNormal * kNormal + kNormal) /
                                                            (4 * static_cast<double>(degrees));
  // Equal values have no width; their mean may differ from them in the last digit.
  if (std::ranges::all_of(values, [&](double value) { return value == values.front(); })) return 0;
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return t * std::sqrt(squares / static_cast<double>(degrees) / static_cast<double>(values.size()));
}

}  // namespace ymir
