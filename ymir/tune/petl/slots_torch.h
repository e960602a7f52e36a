// What an adapter may put into a block: LoRA at a linear site, a bottleneck behind one, a prefix
// before keys and values. Values and gradients have the same form; the tensors are views into the
// flat parameters of whoever owns the slot. The model only knows sites.
#pragma once

#include <ATen/core/Tensor.h>

#include "ymir/tune/model/ops_torch.h"

namespace ymir {

// y = x W^T + b + s (drop(x) A^T) B^T (Hu et al., 2021, equation 3). With a magnitude m (DoRA, Liu
// et al., 2024): y = m / |W + s B A| * (x W^T + s (x A^T) B^T) + b, norms over each output's row
// and constant in the backward. With dropout as PEFT trains it: y = x W^T + b + (f - 1) x' W^T + f
// s (x' A^T) B^T where x' = drop(x) and f = m / |W + s B A|.
struct LoraSlot {
  at::Tensor a{};          // [r, in]
  at::Tensor b{};          // [out, r]
  at::Tensor magnitude{};  // [out]; undefined: plain LoRA
  double scale = 0;
  kernels::Dropout dropout{};
  std::uint32_t random_site = 0;
  explicit operator bool() const { return a.defined(); }
};
struct LoraTape {
  at::Tensor low{};        // drop(x) A^T  [N, r]
  at::Tensor keep{};       // u8 [N, in], when there is dropout
  at::Tensor direction{};  // DoRA: what m multiplies  [N, out]
  at::Tensor factor{};     // DoRA: m / norm  [out]
  Linear frozen{};         // DoRA with dropout: the map itself
};

// Adapts y in place. `layout`: the rows of x's lines. `linear`: the frozen map; `biased`: its bias
// is in y already. `keys` null or no dropout: x as it is. `tape` null: nothing is kept.
void lora_add(const LoraSlot& slot, const RowLayout& layout, const at::Tensor& x, at::Tensor y,
              const Linear& linear, bool biased, const RandomKeys* keys, LoraTape* tape);
// DoRA: adds the magnitude's gradient, returns the gradient before it. Else dy itself.
at::Tensor magnitude_backward(const LoraTape& tape, const at::Tensor& dy, const LoraSlot* gradient);
// Adds the gradients of A and B; dx += gradient at x when dx is defined. dy: after
// magnitude_backward.
void lora_backward(const LoraSlot& slot, const LoraTape& tape, const at::Tensor& x,
                   const at::Tensor& dy, const LoraSlot& gradient, at::Tensor dx);

// y + gelu(y D^T + d) U^T + u (Houlsby et al., 2019).
struct BottleneckSlot {
  at::Tensor down{}, down_bias{};  // [b, H], [b]
  at::Tensor up{}, up_bias{};      // [H, b], [H]
  explicit operator bool() const { return down.defined(); }
};
struct BottleneckTape {
  at::Tensor y{}, slope{}, hidden{};
};
void bottleneck_add(const BottleneckSlot& slot, at::Tensor y, BottleneckTape* tape);
// Adds the gradients; returns the one at y.
at::Tensor bottleneck_backward(const BottleneckSlot& slot, const BottleneckTape& tape,
                               const at::Tensor& dy, const BottleneckSlot& gradient);

// Keys and values that every row sees before its own (Li and Liang, 2021).
struct PrefixSlot {
  at::Tensor keys{}, values{};  // [p, kv_heads head_width]
  explicit operator bool() const { return keys.defined(); }
};
// The rows' lines of `x` with the prefix before each: layout.offsets grow by p a row.
RowLayout with_prefix(const RowLayout& layout, std::int64_t length);
at::Tensor prepend(const RowLayout& layout, const at::Tensor& prefix, const at::Tensor& x);
// dall = gradient of prepend's result: the prefix's share is added to `dprefix`, the rest goes
// to dx.
void prepend_backward(const RowLayout& layout, const at::Tensor& dall, at::Tensor dprefix,
                      at::Tensor dx);

}  // namespace ymir
