#include "ymir/tune/petl/lm_head_torch.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/result.h"

namespace ymir {
namespace {

constexpr std::int64_t kChunk = 256;  // lines

// -log p(label) of one line; the line becomes the gradient of that over divisor.
double line_loss(float* logits, std::int64_t width, std::int32_t label, double divisor,
                 bool with_gradient) {
  const float top = *std::max_element(logits, logits + width);
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(logits[i]) - top);
  const double loss = std::log(sum) + top - logits[label];
  if (!with_gradient) return loss;
  for (std::int64_t i = 0; i < width; ++i)
    logits[i] = static_cast<float>(
        (std::exp(static_cast<double>(logits[i]) - top) / sum - (i == label ? 1.0 : 0.0)) /
        divisor);
  return loss;
}

}  // namespace

std::vector<std::int32_t> next_tokens(const RowLayout& layout, std::span<const std::int32_t> ids,
                                      std::span<const std::uint8_t> targets) {
  std::vector<std::int32_t> next(ids.size(), -1);
  for (std::size_t row = 0; row + 1 < layout.offsets.size(); ++row)
    for (auto t = static_cast<std::size_t>(layout.offsets[row]);
         t + 1 < static_cast<std::size_t>(layout.offsets[row + 1]); ++t)
      if (targets[t + 1] != 0) next[t] = ids[t + 1];
  return next;
}

std::int64_t count_labels(std::span<const std::int32_t> next) {
  return std::count_if(next.begin(), next.end(), [](std::int32_t id) { return id >= 0; });
}

at::Tensor output_logits(const Encoder& encoder, const at::Tensor& hidden) {
  YMIR_CHECK(encoder.output.weight.defined(), "a causal LM has an output layer");
  return product(hidden, encoder.output);
}

CausalLoss causal_loss(const Encoder& encoder, const at::Tensor& hidden,
                       std::span<const std::int32_t> next, double divisor, bool with_gradient,
                       at::Tensor doutput) {
  CausalLoss out;
  const std::int64_t width = hidden.size(1);
  if (with_gradient) out.dhidden = at::zeros(hidden.sizes(), hidden.options());
  std::vector<std::int64_t> lines;
  for (std::size_t i = 0; i < next.size(); ++i)
    if (next[i] >= 0) lines.push_back(static_cast<std::int64_t>(i));
  const auto total = static_cast<std::int64_t>(lines.size());
  for (std::int64_t first = 0; first < total; first += kChunk) {
    const std::int64_t count = std::min(kChunk, total - first);
    at::Tensor x = at::empty({count, width}, hidden.options());
    for (std::int64_t i = 0; i < count; ++i)
      x.select(0, i).copy_(hidden.select(0, lines[static_cast<std::size_t>(first + i)]));
    at::Tensor logits = output_logits(encoder, x).cpu();  // no copy where it is there already
    const std::int64_t vocabulary = logits.size(1);
    float* data = logits.mutable_data_ptr<float>();
    std::vector<double> losses(static_cast<std::size_t>(count));
    at::parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto line = static_cast<std::size_t>(lines[static_cast<std::size_t>(first + i)]);
        losses[static_cast<std::size_t>(i)] =
            line_loss(data + i * vocabulary, vocabulary, next[line], divisor, with_gradient);
      }
    });
    for (const double loss : losses) out.sum += loss;
    if (!with_gradient) continue;
    logits = logits.to(x.device());
    const at::Tensor dx = product_backward(logits, encoder.output);
    for (std::int64_t i = 0; i < count; ++i)
      out.dhidden.select(0, lines[static_cast<std::size_t>(first + i)]).copy_(dx.select(0, i));
    if (doutput.defined()) multiply_add(doutput, logits.t(), x, 1, 1);
  }
  return out;
}

}  // namespace ymir
