#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <cmath>

#include "ymir/base/result.h"
#include "ymir/tune/model/ops_torch.h"

namespace ymir {
namespace {

constexpr std::int64_t kGrain = 16;  // rows of a few hundred values each

at::Tensor floats(at::IntArrayRef shape) { return at::empty(shape, at::kFloat); }

}  // namespace

Linear Linear::slice(std::int64_t first, std::int64_t count) const {
  Linear part;
  part.weight = weight.narrow(0, first, count);
  if (weight16.defined()) part.weight16 = weight16.narrow(0, first, count);
  if (bias.defined()) part.bias = bias.narrow(0, first, count);
  return part;
}

at::Tensor product(const at::Tensor& x, const Linear& linear) {
  if (linear.weight16.defined())
    return at::mm(x.to(at::kBFloat16), linear.weight16.t()).to(at::kFloat);
  return at::mm(x, linear.weight.t());
}

at::Tensor product_with_bias(const at::Tensor& x, const Linear& linear) {
  if (linear.weight16.defined()) return product(x, linear).add_(linear.bias);
  return at::addmm(linear.bias, x, linear.weight.t());
}

at::Tensor product_backward(const at::Tensor& dy, const Linear& linear, at::Tensor into) {
  if (linear.weight16.defined()) {
    at::Tensor dx = at::mm(dy.to(at::kBFloat16), linear.weight16).to(at::kFloat);
    return into.defined() ? into.add_(dx) : dx;
  }
  if (!into.defined()) return at::mm(dy, linear.weight);
  return into.addmm_(dy, linear.weight);
}

void multiply_add(at::Tensor c, const at::Tensor& a, const at::Tensor& b, double alpha,
                  double beta) {
  c.addmm_(a, b, beta, alpha);
}

std::uint32_t random_site(Purpose purpose, int layer, int head) {
  return static_cast<std::uint32_t>(purpose) << 24 | static_cast<std::uint32_t>(layer) << 8 |
         static_cast<std::uint32_t>(head);
}

at::Tensor row_mask(const RowLayout& layout, std::int64_t width, bool first_only,
                    const RandomKeys& keys, std::uint32_t site, kernels::Dropout dropout) {
  const std::int64_t lines = first_only ? layout.rows() : layout.tokens();
  at::Tensor keep = at::empty({lines, width}, at::kByte);
  std::uint8_t* out = keep.mutable_data_ptr<std::uint8_t>();
  at::parallel_for(0, layout.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto r = static_cast<std::size_t>(row);
      const kernels::DropoutKey key{keys.seed, keys.rows[r], keys.epoch, site};
      const std::int64_t first = first_only ? row : layout.offsets[r];
      const std::int64_t count = first_only ? 1 : layout.length(row);
      kernels::dropout_mask(key, dropout, count * width, out + first * width);
    }
  });
  return keep;
}

at::Tensor residual_norm(const NormWeights& norm, const at::Tensor& bias, at::Tensor z,
                         const at::Tensor& residual, const at::Tensor& keep, float scale,
                         NormTape* tape) {
  const std::int64_t lines = z.size(0), width = z.size(1);
  at::Tensor y = floats({lines, width});
  if (tape != nullptr)
    *tape = {floats({lines, width}), floats({lines}), keep, keep.defined() ? scale : 1.0f};
  const kernels::Norm weights{norm.gain.const_data_ptr<float>(), norm.bias.const_data_ptr<float>(),
                              static_cast<float>(norm.epsilon), width};
  const float* b = bias.const_data_ptr<float>();
  const float* from = residual.const_data_ptr<float>();
  const std::uint8_t* mask = keep.defined() ? keep.const_data_ptr<std::uint8_t>() : nullptr;
  float* sum = z.mutable_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  float* normalised = tape != nullptr ? tape->normalised.mutable_data_ptr<float>() : nullptr;
  float* inverse = tape != nullptr ? tape->inverse.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, lines, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = i * width;
      kernels::residual_norm_row(weights, b, mask != nullptr ? mask + at : nullptr, scale,
                                 from + at, sum + at, out + at,
                                 normalised != nullptr ? normalised + at : nullptr,
                                 inverse != nullptr ? inverse + i : nullptr);
    }
  });
  return y;
}

std::pair<at::Tensor, at::Tensor> residual_norm_backward(const NormWeights& norm,
                                                         const NormTape& tape,
                                                         const at::Tensor& dy) {
  const std::int64_t lines = dy.size(0), width = dy.size(1);
  at::Tensor dsum = floats({lines, width});
  at::Tensor dz = tape.keep.defined() ? floats({lines, width}) : dsum;
  const kernels::Norm weights{norm.gain.const_data_ptr<float>(), norm.bias.const_data_ptr<float>(),
                              static_cast<float>(norm.epsilon), width};
  const float* g = dy.const_data_ptr<float>();
  const float* normalised = tape.normalised.const_data_ptr<float>();
  const float* inverse = tape.inverse.const_data_ptr<float>();
  const std::uint8_t* mask =
      tape.keep.defined() ? tape.keep.const_data_ptr<std::uint8_t>() : nullptr;
  float* out = dsum.mutable_data_ptr<float>();
  float* masked = dz.mutable_data_ptr<float>();
  at::parallel_for(0, lines, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = i * width;
      kernels::norm_backward_row(weights, g + at, normalised + at, inverse[i], out + at);
      if (mask != nullptr) kernels::apply_mask(out + at, mask + at, tape.scale, width, masked + at);
    }
  });
  return {dz, dsum};
}

at::Tensor gelu(const at::Tensor& z, const at::Tensor& bias, at::Tensor* slope) {
  const std::int64_t lines = z.size(0), width = z.size(1);
  at::Tensor h = floats({lines, width});
  if (slope != nullptr) *slope = floats({lines, width});
  const float* in = z.const_data_ptr<float>();
  const float* b = bias.const_data_ptr<float>();
  float* out = h.mutable_data_ptr<float>();
  float* derivative = slope != nullptr ? slope->mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, lines, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      kernels::gelu_row(in + i * width, b, width, out + i * width,
                        derivative != nullptr ? derivative + i * width : nullptr);
  });
  return h;
}

}  // namespace ymir
