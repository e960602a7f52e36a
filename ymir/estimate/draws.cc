#include "ymir/estimate/draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ymir/base/result.h"

namespace ymir {
namespace {

constexpr double radical_inverse(int index, int base) {
  double value = 0, digit = 1;
  for (; index > 0; index /= base) {
    digit /= base;
    value += digit * (index % base);
  }
  return value;
}

constexpr std::array<int, 6> kPrimes{2, 3, 5, 7, 11, 13};

constexpr std::array<Draws, kPrimes.size()> halton() {
  std::array<Draws, kPrimes.size()> table{};
  for (std::size_t d = 0; d < kPrimes.size(); ++d) {
    for (int i = 0; i < kNumDraws; ++i) {
      table[d][static_cast<std::size_t>(i)] = radical_inverse(i + 1, kPrimes[d]);
    }
  }
  return table;
}

constexpr std::array<Draws, kPrimes.size()> kHalton = halton();

// Linear in log space over normal scores (z in units of the 90th percentile).
class LogLinear {
 public:
  explicit LogLinear(const Interval& x)
      : middle_(x.p50), below_(std::log(x.p50 / x.p10)), above_(std::log(x.p90 / x.p50)) {}
  double at(double z) const { return middle_ * std::exp(z * (z < 0 ? below_ : above_)); }

 private:
  double middle_, below_, above_;
};

void check_ordered(const Interval& x) {
  YMIR_CHECK(x.p10 > 0 && x.p10 <= x.p50 && x.p50 <= x.p90, "interval is not ordered");
}

}  // namespace

const Draws& uniform(Dimension dimension) { return kHalton[static_cast<std::size_t>(dimension)]; }

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double normal_quantile(double probability) {
  YMIR_CHECK(probability > 0 && probability < 1, "normal_quantile: outside (0, 1)");
  double low = -9, high = 9;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (normal_cdf(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

const Draws& normal(Dimension dimension) {
  static const std::array<Draws, kPrimes.size()> table = [] {
    std::array<Draws, kPrimes.size()> scores{};
    for (std::size_t d = 0; d < scores.size(); ++d) {
      std::ranges::transform(kHalton[d], scores[d].begin(), normal_quantile);
    }
    return scores;
  }();
  return table[static_cast<std::size_t>(dimension)];
}

double quantile(const Interval& x, double probability) {
  check_ordered(x);
  return LogLinear(x).at(normal_quantile(std::clamp(probability, 0.02, 0.98)) / kZ90);
}

Draws draw(const Interval& interval, Dimension dimension) {
  check_ordered(interval);
  constexpr double tail = kZ98 / kZ90;
  const LogLinear shape(interval);
  Draws result{};
  std::ranges::transform(normal(dimension), result.begin(), [&](double score) {
    return shape.at(std::clamp(score / kZ90, -tail, tail));
  });
  return result;
}

Interval interval_of(Draws draws) {
  std::ranges::sort(draws);
  auto at = [&](double probability) {
    const double place = probability * (kNumDraws - 1);
    const auto below = static_cast<std::size_t>(place);
    const double part = place - std::floor(place);
    return draws[below] + part * (draws[below + 1] - draws[below]);
  };
  return {at(0.1), at(0.5), at(0.9)};
}

double mean_of(const Draws& draws) {
  double sum = 0;
  for (const double value : draws) sum += value;
  return sum / kNumDraws;
}

Interval log_normal(double mean, double deviation) {
  return {std::exp(mean - kZ90 * deviation), std::exp(mean), std::exp(mean + kZ90 * deviation)};
}

}  // namespace ymir
