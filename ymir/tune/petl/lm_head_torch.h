// The causal language model's loss: the output layer over lines that carry a label, in chunks, so
// that [N, vocabulary] never exists at once.
#pragma once

#include <span>

#include "ymir/tune/model/encoder_torch.h"

namespace ymir {

// What each line must predict: the next token of its row where that one is a target, else -1.
// `targets`: per token whether it is to be learnt (a prompt is not).
std::vector<std::int32_t> next_tokens(const RowLayout& layout, std::span<const std::int32_t> ids,
                                      std::span<const std::uint8_t> targets);
std::int64_t count_labels(std::span<const std::int32_t> next);

struct CausalLoss {
  double sum = 0;        // of -log p, over labelled lines
  at::Tensor dhidden{};  // [N, H], of sum / divisor; undefined without gradient
};
// `doutput`: gradient of the output layer's weight, added to when defined.
CausalLoss causal_loss(const Encoder& encoder, const at::Tensor& hidden,
                       std::span<const std::int32_t> next, double divisor, bool with_gradient,
                       at::Tensor doutput);
// [N, vocabulary] of all lines; for few lines.
at::Tensor output_logits(const Encoder& encoder, const at::Tensor& hidden);

}  // namespace ymir
