#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include "ymir/tune/petl/lora_torch.h"

namespace ymir {
namespace {

at::Tensor masked(const at::Tensor& x, const at::Tensor& keep, float scale) {
  at::Tensor out = at::empty(x.sizes(), at::kFloat);
  kernels::apply_mask(x.const_data_ptr<float>(), keep.const_data_ptr<std::uint8_t>(), scale,
                      x.numel(), out.mutable_data_ptr<float>());
  return out;
}

}  // namespace

void lora_add(const LoraSlot& slot, const RowLayout& layout, bool first_only, const at::Tensor& x,
              at::Tensor y, const RandomKeys* keys, LoraTape* tape) {
  at::Tensor input = x, keep;
  if (keys != nullptr && slot.dropout) {
    keep = row_mask(layout, x.size(1), first_only, *keys, slot.random_site, slot.dropout);
    input = masked(x, keep, slot.dropout.scale);
  }
  at::Tensor low = at::mm(input, slot.a.t());
  multiply_add(y, low, slot.b.t(), slot.scale, 1);
  if (tape != nullptr) *tape = {low, keep};
}

void lora_backward(const LoraSlot& slot, const LoraTape& tape, const at::Tensor& x,
                   const at::Tensor& dy, at::Tensor grad_a, at::Tensor grad_b, at::Tensor dx) {
  const at::Tensor dlow = at::mm(dy, slot.b);
  multiply_add(grad_b, dy.t(), tape.low, slot.scale, 1);
  if (!tape.keep.defined()) {
    multiply_add(grad_a, dlow.t(), x, slot.scale, 1);
    if (dx.defined()) multiply_add(dx, dlow, slot.a, slot.scale, 1);
    return;
  }
  multiply_add(grad_a, dlow.t(), masked(x, tape.keep, slot.dropout.scale), slot.scale, 1);
  if (dx.defined()) {
    at::Tensor part = at::mm(dlow, slot.a);
    dx.add_(masked(part, tape.keep, slot.dropout.scale), slot.scale);
  }
}

}  // namespace ymir
