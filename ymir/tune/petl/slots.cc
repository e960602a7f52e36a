#include "ymir/tune/petl/slots_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

namespace ymir {

void lora_add(const LoraSlot& slot, const RowLayout& layout, const at::Tensor& x, at::Tensor y,
              const Linear& linear, bool biased, const RandomKeys* keys, LoraTape* tape) {
  at::Tensor input = x, keep;
  if (keys != nullptr && slot.dropout) {
    keep = row_mask(layout, x.size(1), *keys, slot.random_site, slot.dropout);
    input = masked(x, keep, slot.dropout.scale);
  }
  const at::Tensor low = times(input, slot.a.t());
  if (tape != nullptr) *tape = {low, keep, {}, {}, {}};
  if (!slot.magnitude.defined()) {
    multiply_add(y, low, slot.b.t(), slot.scale, 1);
    return;
  }
  const at::Tensor norm = at::linalg_vector_norm(
      at::addmm(in_f32(linear.weight), slot.b, slot.a, 1, slot.scale), 2, at::IntArrayRef{1});
  const at::Tensor factor = slot.magnitude / norm;
  if (keep.defined()) {  // of the dropped input's product only the part beyond W x is stretched
    const at::Tensor base = product(input, linear);
    const at::Tensor direction = at::addmm(base, low, slot.b.t(), 1, slot.scale);
    y.add_(direction * factor).sub_(base);
    if (tape != nullptr) *tape = {low, keep, direction / norm, factor, linear};
    return;
  }
  const bool has_bias = biased && linear.bias.defined();
  if (has_bias) y.sub_(linear.bias);
  multiply_add(y, low, slot.b.t(), slot.scale, 1);
  if (tape != nullptr) {
    tape->direction = y / norm;
    tape->factor = factor;
  }
  y.mul_(factor);
  if (has_bias) y.add_(linear.bias);
}

at::Tensor magnitude_backward(const LoraTape& tape, const at::Tensor& dy,
                              const LoraSlot* gradient) {
  if (!tape.direction.defined()) return dy;
  if (gradient != nullptr) gradient->magnitude.add_((dy * tape.direction).sum(0));
  return dy * tape.factor;
}

void lora_backward(const LoraSlot& slot, const LoraTape& tape, const at::Tensor& x,
                   const at::Tensor& dy, const LoraSlot& gradient, at::Tensor dx) {
  const at::Tensor dlow = times(dy, slot.b);
  multiply_add(gradient.b, dy.t(), tape.low, slot.scale, 1);
  multiply_add(gradient.a, dlow.t(), masked(x, tape.keep, slot.dropout.scale), slot.scale, 1);
  if (!dx.defined()) return;
  if (!tape.keep.defined()) {
    multiply_add(dx, dlow, slot.a, slot.scale, 1);
  } else {
    dx.add_(masked(times(dlow, slot.a), tape.keep, slot.dropout.scale), slot.scale);
  }
  if (!tape.frozen.weight.defined()) return;
  // The frozen product's backward took W^T f dy for both shares of x; of (f - 1) dy the dropped
  // input has its share, x itself none.
  const at::Tensor excess = product_backward(dy * ((tape.factor - 1) / tape.factor), tape.frozen);
  dx.add_(masked(excess, tape.keep, slot.dropout.scale)).sub_(excess);
}

void bottleneck_add(const BottleneckSlot& slot, at::Tensor y, BottleneckTape* tape) {
  const at::Tensor z = times(y, slot.down.t());
  const at::Tensor hidden = activation(Activation::kGelu, false, z, slot.down_bias,
                                       tape != nullptr ? &tape->slope : nullptr);
  if (tape != nullptr) {
    tape->y = y.clone();
    tape->hidden = hidden;
  }
  multiply_add(y, hidden, slot.up.t(), 1, 1);
  y.add_(slot.up_bias);
}

at::Tensor bottleneck_backward(const BottleneckSlot& slot, const BottleneckTape& tape,
                               const at::Tensor& dy, const BottleneckSlot& gradient) {
  multiply_add(gradient.up, dy.t(), tape.hidden, 1, 1);
  gradient.up_bias.add_(dy.sum(0));
  const at::Tensor dz = activation_backward(false, times(dy, slot.up), tape.slope);
  multiply_add(gradient.down, dz.t(), tape.y, 1, 1);
  gradient.down_bias.add_(dz.sum(0));
  return at::addmm(dy, dz, slot.down);
}

RowLayout with_prefix(const RowLayout& layout, std::int64_t length) {
  RowLayout out = layout;
  for (std::size_t row = 0; row < out.offsets.size(); ++row)
    out.offsets[row] += static_cast<std::int64_t>(row) * length;
  return out;
}

at::Tensor prepend(const RowLayout& layout, const at::Tensor& prefix, const at::Tensor& x) {
  const std::int64_t length = prefix.size(0);
  at::Tensor all = at::empty({x.size(0) + layout.rows() * length, x.size(1)}, x.options());
  for (std::int64_t row = 0; row < layout.rows(); ++row) {
    const std::int64_t from = layout.offsets[static_cast<std::size_t>(row)];
    const std::int64_t to = from + row * length;
    all.narrow(0, to, length).copy_(prefix);
    all.narrow(0, to + length, layout.length(row)).copy_(x.narrow(0, from, layout.length(row)));
  }
  return all;
}

void prepend_backward(const RowLayout& layout, const at::Tensor& dall, at::Tensor dprefix,
                      at::Tensor dx) {
  const std::int64_t length = dprefix.size(0);
  for (std::int64_t row = 0; row < layout.rows(); ++row) {
    const std::int64_t to = layout.offsets[static_cast<std::size_t>(row)];
    const std::int64_t from = to + row * length;
    dprefix.add_(dall.narrow(0, from, length));
    dx.narrow(0, to, layout.length(row)).copy_(dall.narrow(0, from + length, layout.length(row)));
  }
}

}  // namespace ymir
