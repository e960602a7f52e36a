// Low-rank adaptation of a frozen linear map: y = x W^T + b + s (drop(x) A^T) B^T
// (Hu et al., 2021, equation 3). The tensors are views into the flat parameters of whoever owns the
// slot; the model only knows sites.
#pragma once

#include <ATen/core/Tensor.h>

#include "ymir/tune/model/ops_torch.h"

namespace ymir {

struct LoraSlot {
  at::Tensor a{};  // [r, in]
  at::Tensor b{};  // [out, r]
  double scale = 0;
  kernels::Dropout dropout{};
  std::uint32_t random_site = 0;
  explicit operator bool() const { return a.defined(); }
};
struct LoraTape {
  at::Tensor low{};   // drop(x) A^T  [N, r]
  at::Tensor keep{};  // u8 [N, in], when there is dropout
};

// y += s (drop(x) A^T) B^T. `first_only`: x has one line a row (layout of the batch). `keys` null
// or no dropout: x as it is. `tape` null: nothing is kept.
void lora_add(const LoraSlot& slot, const RowLayout& layout, bool first_only, const at::Tensor& x,
              at::Tensor y, const RandomKeys* keys, LoraTape* tape);
// grad_a, grad_b += gradients; dx += gradient at x when dx is defined.
void lora_backward(const LoraSlot& slot, const LoraTape& tape, const at::Tensor& x,
                   const at::Tensor& dy, at::Tensor grad_a, at::Tensor grad_b, at::Tensor dx);

}  // namespace ymir
