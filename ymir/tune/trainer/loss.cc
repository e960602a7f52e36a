#include "ymir/tune/trainer/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ymir {
namespace {

double cross_entropy_row(std::span<const float> logits, std::size_t label, double divisor,
                         std::span<float> gradient) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  if (!gradient.empty())
    for (std::size_t c = 0; c < logits.size(); ++c)
      gradient[c] = static_cast<float>(
          (std::exp(logits[c] - top) / sum - (c == label ? 1.0 : 0.0)) / divisor);
  return std::log(sum) + top - logits[label];
}

// Binary cross entropy of every output, their mean, from logits without overflow.
double binary_row(std::span<const float> logits, std::span<const float> truth, double divisor,
                  std::span<float> gradient) {
  double sum = 0;
  const auto width = static_cast<double>(logits.size());
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const double z = logits[c], e = std::exp(-std::abs(z));
    sum += std::max(z, 0.0) - z * truth[c] + std::log1p(e);
    const double p = z >= 0 ? 1 / (1 + e) : e / (1 + e);
    if (!gradient.empty()) gradient[c] = static_cast<float>((p - truth[c]) / (width * divisor));
  }
  return sum / width;
}

// Squared error, the mean over outputs.
double squared_row(std::span<const float> logits, std::span<const float> truth, double divisor,
                   std::span<float> gradient) {
  double sum = 0;
  const auto width = static_cast<double>(logits.size());
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const double error = static_cast<double>(logits[c]) - truth[c];
    sum += error * error;
    if (!gradient.empty()) gradient[c] = static_cast<float>(2 * error / (width * divisor));
  }
  return sum / width;
}

}  // namespace

double loss_of(const Targets& targets, std::span<const float> logits, double divisor,
               std::span<float> gradient) {
  const auto width = static_cast<std::size_t>(targets.outputs);
  const std::size_t rows = logits.size() / width;
  double sum = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto line = logits.subspan(row * width, width);
    const auto slope = gradient.empty() ? gradient : gradient.subspan(row * width, width);
    if (targets.kind == TaskKind::kClassify) {
      sum +=
          cross_entropy_row(line, static_cast<std::size_t>(targets.classes[row]), divisor, slope);
      continue;
    }
    const auto truth = targets.values.subspan(row * width, width);
    sum += targets.kind == TaskKind::kMultiLabel ? binary_row(line, truth, divisor, slope)
                                                 : squared_row(line, truth, divisor, slope);
  }
  return sum;
}

}  // namespace ymir
