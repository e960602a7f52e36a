#include "ymir/tune/metrics/regression.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {
namespace {

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

double mean(std::span<const double> values) {
  ExactSum sum;
  for (const double v : values) sum.add(v);
  return sum.value() / static_cast<double>(values.size());
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double shared = static_cast<double>(i + 1 + end) / 2;
    for (; i < end; ++i) result[order[i]] = shared;
  }
  return result;
}

}  // namespace

std::optional<double> mean_squared_error(std::span<const double> predicted,
                                         std::span<const double> actual) {
  YMIR_CHECK(predicted.size() == actual.size(), "sides of different length");
  if (predicted.empty()) return std::nullopt;
  ExactSum sum;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    sum.add((predicted[i] - actual[i]) * (predicted[i] - actual[i]));
  const double value = sum.value() / static_cast<double>(predicted.size());
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> pearson(std::span<const double> x, std::span<const double> y) {
  YMIR_CHECK(x.size() == y.size(), "sides of different length");
  if (x.size() < 2 || !all_finite(x) || !all_finite(y)) return std::nullopt;
  const auto constant = [](std::span<const double> v) {
    return std::ranges::all_of(v, [&](double one) { return one == v[0]; });
  };
  if (constant(x) || constant(y)) return std::nullopt;
  const double mean_x = mean(x), mean_y = mean(y);
  ExactSum xy, xx, yy;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xy.add(dx * dy);
    xx.add(dx * dx);
    yy.add(dy * dy);
  }
  const double value = xy.value() / std::sqrt(xx.value()) / std::sqrt(yy.value());
  if (!std::isfinite(value)) return std::nullopt;
  return std::clamp(value, -1.0, 1.0);
}

std::optional<double> spearman(std::span<const double> x, std::span<const double> y) {
  if (!all_finite(x) || !all_finite(y)) return std::nullopt;
  const auto rank_x = ranks(x), rank_y = ranks(y);
  return pearson(rank_x, rank_y);
}

void Perplexity::add(double nll_sum, std::int64_t num_tokens) {
  nll_.add(nll_sum);
  num_tokens_ += num_tokens;
}

void Perplexity::merge(const Perplexity& other) {
  nll_.merge(other.nll_);
  num_tokens_ += other.num_tokens_;
}

std::optional<double> Perplexity::mean_nll() const {
  if (num_tokens_ == 0) return std::nullopt;
  const double value = nll_.value() / static_cast<double>(num_tokens_);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> Perplexity::value() const {
  const auto mean_loss = mean_nll();
  if (!mean_loss) return std::nullopt;
  const double value = std::exp(*mean_loss);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace ymir
