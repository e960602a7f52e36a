#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include <cmath>

#include "ymir/base/result.h"
#include "ymir/tune/model/plain_torch.h"

namespace ymir {
namespace {

constexpr std::int64_t kGrain = 16;  // rows of a few hundred values each

at::Tensor floats(at::IntArrayRef shape) { return at::empty(shape, at::kFloat); }

const float* data_or_null(const at::Tensor& t) {
  return t.defined() ? t.const_data_ptr<float>() : nullptr;
}

kernels::Norm row_norm(const NormWeights& norm, std::int64_t width) {
  return {norm.gain.const_data_ptr<float>(), data_or_null(norm.bias),
          static_cast<float>(norm.epsilon), width, norm.centred};
}

}  // namespace

Linear Linear::slice(std::int64_t begin, std::int64_t count) const {
  Linear part;
  part.weight = weight.narrow(0, begin, count);
  if (weight16.defined()) part.weight16 = weight16.narrow(0, begin, count);
  if (bias.defined()) part.bias = bias.narrow(0, begin, count);
  part.packed = packed;
  part.first = first + begin;
  return part;
}

at::Tensor in_f32(const at::Tensor& weight) {
  return weight.scalar_type() == at::kFloat ? weight : weight.to(at::kFloat);
}

RowLayout one_line_a_row(std::int64_t rows) {
  RowLayout layout;
  for (std::int64_t row = 1; row <= rows; ++row) layout.offsets.push_back(row);
  return layout;
}

RandomKeys RandomKeys::part(std::size_t first, std::size_t count) const {
  RandomKeys part = *this;
  part.rows = rows.subspan(first, count);
  if (!seeds.empty()) part.seeds = seeds.subspan(first, count);
  if (!epochs.empty()) part.epochs = epochs.subspan(first, count);
  return part;
}

std::uint32_t random_site(Purpose purpose, int layer, int head) {
  return static_cast<std::uint32_t>(purpose) << 24 | static_cast<std::uint32_t>(layer) << 8 |
         static_cast<std::uint32_t>(head);
}

at::Tensor row_mask(const RowLayout& layout, std::int64_t width, const RandomKeys& keys,
                    std::uint32_t site, kernels::Dropout dropout) {
  at::Tensor keep = at::empty({layout.tokens(), width}, at::kByte);
  std::uint8_t* out = keep.mutable_data_ptr<std::uint8_t>();
  at::parallel_for(0, layout.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto r = static_cast<std::size_t>(row);
      kernels::dropout_mask(keys.key(r, site), dropout, layout.length(row) * width,
                            out + layout.offsets[r] * width);
    }
  });
  return keep;
}

at::Tensor masked(const at::Tensor& x, const at::Tensor& keep, float scale) {
  if (is_plain(x)) return plain::masked(x, keep, scale);
  if (!keep.defined()) return x;
  at::Tensor out = floats(x.sizes());
  kernels::apply_mask(x.const_data_ptr<float>(), keep.const_data_ptr<std::uint8_t>(), scale,
                      x.numel(), out.mutable_data_ptr<float>());
  return out;
}

at::Tensor norm_lines(const NormWeights& norm, const at::Tensor& x, NormTape* tape) {
  if (is_plain(x)) return plain::norm_lines(norm, x, tape);
  const std::int64_t lines = x.size(0), width = x.size(1);
  at::Tensor y = floats({lines, width});
  if (tape != nullptr) *tape = {floats({lines, width}), floats({lines}), {}, 1.0f};
  const kernels::Norm weights = row_norm(norm, width);
  const float* in = x.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  float* normalised = tape != nullptr ? tape->normalised.mutable_data_ptr<float>() : nullptr;
  float* inverse = tape != nullptr ? tape->inverse.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, lines, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      kernels::norm_row(weights, in + i * width, out + i * width,
                        normalised != nullptr ? normalised + i * width : nullptr,
                        inverse != nullptr ? inverse + i : nullptr);
  });
  return y;
}

at::Tensor residual_add(const at::Tensor& bias, at::Tensor z, const at::Tensor& residual,
                        const at::Tensor& keep, float scale) {
  if (is_plain(z)) return plain::residual_add(bias, std::move(z), residual, keep, scale);
  const std::int64_t width = z.size(1);
  const float* b = data_or_null(bias);
  const float* from = residual.const_data_ptr<float>();
  const std::uint8_t* mask = keep.defined() ? keep.const_data_ptr<std::uint8_t>() : nullptr;
  float* sum = z.mutable_data_ptr<float>();
  at::parallel_for(0, z.size(0), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      kernels::residual_row(b, mask != nullptr ? mask + i * width : nullptr, scale,
                            from + i * width, width, sum + i * width);
  });
  return z;
}

at::Tensor residual_norm(const NormWeights& norm, const at::Tensor& bias, at::Tensor z,
                         const at::Tensor& residual, const at::Tensor& keep, float scale,
                         NormTape* tape) {
  if (is_plain(z))
    return plain::residual_norm(norm, bias, std::move(z), residual, keep, scale, tape);
  const std::int64_t lines = z.size(0), width = z.size(1);
  at::Tensor y = floats({lines, width});
  if (tape != nullptr)
    *tape = {floats({lines, width}), floats({lines}), keep, keep.defined() ? scale : 1.0f};
  const kernels::Norm weights = row_norm(norm, width);
  const float* b = data_or_null(bias);
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
                                                         const NormTape& tape, const at::Tensor& dy,
                                                         const at::Tensor& dpast) {
  if (is_plain(dy)) return plain::residual_norm_backward(norm, tape, dy, dpast);
  const std::int64_t lines = dy.size(0), width = dy.size(1);
  at::Tensor dsum = floats({lines, width});
  const float* past = data_or_null(dpast);
  at::Tensor dz = tape.keep.defined() ? floats({lines, width}) : dsum;
  const kernels::Norm weights = row_norm(norm, width);
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
      if (past != nullptr) kernels::residual_row(nullptr, nullptr, 1, past + at, width, out + at);
      if (mask != nullptr) kernels::apply_mask(out + at, mask + at, tape.scale, width, masked + at);
    }
  });
  return {dz, dsum};
}

void norm_gradient(const NormTape& tape, const at::Tensor& dy, NormWeights& gradient) {
  if (gradient.gain.defined()) gradient.gain.add_((dy * tape.normalised).sum(0));
  if (gradient.bias.defined()) gradient.bias.add_(dy.sum(0));
}

void linear_gradient(const at::Tensor& x, const at::Tensor& dy, Linear& gradient) {
  if (gradient.weight.defined()) multiply_add(gradient.weight, dy.t(), x, 1, 1);
  if (gradient.bias.defined()) gradient.bias.add_(dy.sum(0));
}

at::Tensor activation(Activation f, bool gated, const at::Tensor& z, const at::Tensor& bias,
                      at::Tensor* slope) {
  if (is_plain(z)) return plain::activation(f, gated, z, bias, slope);
  const std::int64_t lines = z.size(0), in_width = z.size(1);
  const std::int64_t width = gated ? in_width / 2 : in_width;
  at::Tensor h = floats({lines, width});
  if (slope != nullptr) *slope = floats({lines, in_width});
  at::parallel_for(0, lines, 4, [&](std::int64_t begin, std::int64_t end) {
    activation_lines(f, gated, z.narrow(0, begin, end - begin), bias, h, slope, begin);
  });
  return h;
}

void activation_lines(Activation f, bool gated, const at::Tensor& z, const at::Tensor& bias,
                      at::Tensor& h, at::Tensor* slope, std::int64_t first) {
  const std::int64_t in_width = z.size(1), width = h.size(1);
  const float* in = z.const_data_ptr<float>();
  const float* b = data_or_null(bias);
  float* out = h.mutable_data_ptr<float>() + first * width;
  float* derivative =
      slope != nullptr ? slope->mutable_data_ptr<float>() + first * in_width : nullptr;
  for (std::int64_t i = 0; i < z.size(0); ++i) {
    float* d = derivative != nullptr ? derivative + i * in_width : nullptr;
    if (gated) {
      kernels::gated_row(f, in + i * in_width, b, width, out + i * width, d);
    } else {
      kernels::activation_row(f, in + i * in_width, b, width, out + i * width, d);
    }
  }
}

at::Tensor activation_backward(bool gated, at::Tensor dh, const at::Tensor& slope) {
  if (is_plain(dh)) return plain::activation_backward(gated, dh, slope);
  const float* factor = slope.const_data_ptr<float>();
  float* d = dh.mutable_data_ptr<float>();
  if (!gated) {
    at::parallel_for(0, dh.numel(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      kernels::multiply(d + begin, factor + begin, end - begin);
    });
    return dh;
  }
  const std::int64_t width = dh.size(1);
  at::Tensor dz = floats({dh.size(0), 2 * width});
  float* out = dz.mutable_data_ptr<float>();
  at::parallel_for(0, dh.size(0), 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t half : {std::int64_t{0}, width})
        for (std::int64_t c = 0; c < width; ++c)
          out[i * 2 * width + half + c] = d[i * width + c] * factor[i * 2 * width + half + c];
  });
  return dz;
}

void rotate(const RotaryTable& table, std::span<const std::int32_t> positions,
            std::int64_t head_width, bool back, at::Tensor x) {
  if (is_plain(x)) return plain::rotate(table, positions, head_width, back, std::move(x));
  const std::int64_t half = head_width / 2, stride = x.stride(0);
  const int heads = static_cast<int>(x.size(1) / head_width);
  const float* cosine = table.cosine.const_data_ptr<float>();
  const float* sine = table.sine.const_data_ptr<float>();
  float* lines = x.mutable_data_ptr<float>();
  at::parallel_for(0, x.size(0), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = positions[static_cast<std::size_t>(i)] * half;
      kernels::rotate_row(lines + i * stride, heads, head_width, cosine + at, sine + at, back);
    }
  });
}

}  // namespace ymir
