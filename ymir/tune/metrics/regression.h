// Metrics of predicted numbers against true ones, and of language models. Values as SciPy's. What
// is undefined (fewer than two rows, a constant side, a NaN anywhere) is nullopt: never best, never
// a target reached. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ymir/tune/metrics/exact_sum.h"

namespace ymir {

// Both sides have as many values. The result does not depend on the order of the rows.
std::optional<double> mean_squared_error(std::span<const double> predicted,
                                         std::span<const double> actual);
std::optional<double> pearson(std::span<const double> x, std::span<const double> y);
// Of ranks; equal values share the mean of their ranks.
std::optional<double> spearman(std::span<const double> x, std::span<const double> y);

// exp(total negative log-likelihood / number of tokens): never a mean of means. Order and grouping
// of what is added do not matter.
class Perplexity {
 public:
  void add(double nll_sum, std::int64_t num_tokens);
  void merge(const Perplexity& other);
  std::optional<double> mean_nll() const;
  std::optional<double> value() const;  // nullopt without tokens, or when it is not finite

 private:
  ExactSum nll_;
  std::int64_t num_tokens_ = 0;
};

}  // namespace ymir
