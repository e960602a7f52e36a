#include "ymir/tune/model/plain_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

namespace ymir {
namespace {

thread_local int forced = 0;

at::Tensor index_tensor(std::span<const std::int64_t> values, at::Device device) {
  at::Tensor t = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), t.mutable_data_ptr<std::int64_t>());
  return t.to(device);
}

at::Tensor keep_factor(const at::Tensor& keep, float scale, const at::Tensor& like) {
  return keep.to(like.device()).to(at::kFloat) * scale;
}

struct Activated {
  at::Tensor value{}, slope{};
};
Activated activate(Activation f, const at::Tensor& x) {
  switch (f) {
    case Activation::kGelu: {
      const at::Tensor cumulative = (at::erf(x * std::sqrt(0.5)) + 1) * 0.5;
      return {x * cumulative, cumulative + x * at::exp(x * x * -0.5) * 0.3989422804014327};
    }
    case Activation::kGeluTanh: {
      const at::Tensor square = x * x;
      const at::Tensor s = at::sigmoid(x * (square * 0.044715 + 1) * 1.5957691216057308);
      return {x * s, s + x * s * (1 - s) * (square * 0.134145 + 1) * 1.5957691216057308};
    }
    case Activation::kRelu: {
      const at::Tensor positive = (x > 0).to(at::kFloat);
      return {x * positive, positive};
    }
    case Activation::kSilu:
      break;
  }
  const at::Tensor s = at::sigmoid(x);
  return {x * s, s * (x * (1 - s) + 1)};
}

// Which keys a query does not see: -infinity there, 0 elsewhere.
at::Tensor causal_bias(std::int64_t queries, std::int64_t keys, at::Device device) {
  at::Tensor bias = at::zeros({queries, keys}, at::kFloat);
  for (std::int64_t query = 0; query < queries; ++query)
    if (const std::int64_t seen = keys - queries + query + 1; seen < keys)
      bias.select(0, query)
          .narrow(0, seen, keys - seen)
          .fill_(-std::numeric_limits<float>::infinity());
  return bias.to(device);
}

// One row's lines by head: [heads, lines, width]; keys and values repeated for their group.
at::Tensor by_head(const at::Tensor& x, const RowLayout& layout, std::int64_t row, int heads,
                   std::int64_t width) {
  const std::int64_t lines = layout.length(row);
  const at::Tensor part = x.narrow(0, layout.offsets[static_cast<std::size_t>(row)], lines);
  const std::int64_t own = x.size(1) / width;
  const at::Tensor split = part.reshape({lines, own, width}).permute({1, 0, 2});
  return own == heads ? split : split.repeat_interleave(heads / own, 0);
}

// The reverse: groups are summed.
void put_back(const at::Tensor& by_heads, const RowLayout& layout, std::int64_t row,
              std::int64_t width, at::Tensor to) {
  const std::int64_t lines = layout.length(row), own = to.size(1) / width;
  const at::Tensor summed =
      by_heads.reshape({own, by_heads.size(0) / own, lines, width}).sum(1).permute({1, 0, 2});
  to.narrow(0, layout.offsets[static_cast<std::size_t>(row)], lines)
      .copy_(summed.reshape({lines, own * width}));
}

at::Tensor kept_probabilities(const AttentionShape& shape, const RandomKeys& random, int layer,
                              std::int64_t row, kernels::Dropout dropout, const at::Tensor& p) {
  const std::int64_t size = p.size(1) * p.size(2);
  at::Tensor keep = at::empty(p.sizes(), at::kByte);
  for (int head = 0; head < shape.heads; ++head)
    kernels::dropout_mask(
        random.key(static_cast<std::size_t>(row), random_site(Purpose::kAttention, layer, head)),
        dropout, size, keep.mutable_data_ptr<std::uint8_t>() + head * size);
  return at::where(keep.to(p.device()).to(at::kBool), p, -p);
}

at::Tensor dropped(const at::Tensor& p, float scale) {
  return at::where(at::signbit(p), at::zeros({}, p.options()), p * scale);
}

}  // namespace

at::Device device_of(const Encoder& encoder) {
  return encoder.layers.front().attention_out.weight.device();
}

bool is_plain(const at::Tensor& x) { return forced > 0 || !x.is_cpu(); }

ForcePlain::ForcePlain() { ++forced; }
ForcePlain::~ForcePlain() { --forced; }

namespace plain {

at::Tensor masked(const at::Tensor& x, const at::Tensor& keep, float scale) {
  return keep.defined() ? x * keep_factor(keep, scale, x) : x;
}

at::Tensor norm_lines(const NormWeights& norm, const at::Tensor& x, NormTape* tape) {
  const at::Tensor centred = norm.centred ? x - x.mean(1, true) : x;
  const at::Tensor inverse = at::rsqrt((centred * centred).mean(1, true) + norm.epsilon);
  const at::Tensor normalised = centred * inverse;
  if (tape != nullptr) *tape = {normalised, inverse, {}, 1.0f};
  const at::Tensor scaled = normalised * norm.gain;
  return norm.bias.defined() ? scaled + norm.bias : scaled;
}

at::Tensor residual_add(const at::Tensor& bias, at::Tensor z, const at::Tensor& residual,
                        const at::Tensor& keep, float scale) {
  if (bias.defined()) z.add_(bias);
  if (keep.defined()) z.mul_(keep_factor(keep, scale, z));
  return z.add_(residual);
}

at::Tensor residual_norm(const NormWeights& norm, const at::Tensor& bias, at::Tensor z,
                         const at::Tensor& residual, const at::Tensor& keep, float scale,
                         NormTape* tape) {
  const at::Tensor y =
      plain::norm_lines(norm, residual_add(bias, std::move(z), residual, keep, scale), tape);
  if (tape != nullptr && keep.defined()) {
    tape->keep = keep;
    tape->scale = scale;
  }
  return y;
}

std::pair<at::Tensor, at::Tensor> residual_norm_backward(const NormWeights& norm,
                                                         const NormTape& tape, const at::Tensor& dy,
                                                         const at::Tensor& dpast) {
  const at::Tensor g = dy * norm.gain;
  at::Tensor inner = g - tape.normalised * (g * tape.normalised).mean(1, true);
  if (norm.centred) inner = inner - g.mean(1, true);
  at::Tensor dsum = inner * tape.inverse.view({-1, 1});
  if (dpast.defined()) dsum = dsum + dpast;
  return {masked(dsum, tape.keep, tape.scale), dsum};
}

at::Tensor activation(Activation f, bool gated, const at::Tensor& z, const at::Tensor& bias,
                      at::Tensor* slope) {
  const at::Tensor x = bias.defined() ? z + bias : z;
  if (!gated) {
    const Activated a = activate(f, x);
    if (slope != nullptr) *slope = a.slope;
    return a.value;
  }
  const std::int64_t width = z.size(1) / 2;
  const at::Tensor up = x.narrow(1, 0, width);
  const Activated a = activate(f, x.narrow(1, width, width));
  if (slope != nullptr) *slope = at::cat({a.value, up * a.slope}, 1);
  return up * a.value;
}

at::Tensor activation_backward(bool gated, const at::Tensor& dh, const at::Tensor& slope) {
  return (gated ? at::cat({dh, dh}, 1) : dh) * slope;
}

void rotate(const RotaryTable& table, std::span<const std::int32_t> positions,
            std::int64_t head_width, bool back, at::Tensor x) {
  const std::vector<std::int64_t> wide(positions.begin(), positions.end());
  const std::int64_t lines = x.size(0), half = head_width / 2;
  const at::Tensor cosine = lines_of(table.cosine.to(x.device()), wide).view({lines, 1, half});
  at::Tensor sine = lines_of(table.sine.to(x.device()), wide).view({lines, 1, half});
  if (back) sine = -sine;
  const at::Tensor heads = x.reshape({lines, -1, head_width});
  const at::Tensor a = heads.narrow(2, 0, half), b = heads.narrow(2, half, half);
  x.copy_(at::cat({a * cosine - b * sine, b * cosine + a * sine}, 2).view({lines, -1}));
}

at::Tensor attention(const AttentionShape& shape, const RowLayout& queries, const RowLayout& keys,
                     const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     kernels::Dropout dropout, const RandomKeys& random, int layer,
                     AttentionTape* tape) {
  const double scale = 1 / std::sqrt(static_cast<double>(shape.width));
  at::Tensor context = at::empty({q.size(0), shape.heads * shape.width}, q.options());
  std::vector<at::Tensor> kept;
  for (std::int64_t row = 0; row < keys.rows(); ++row) {
    const at::Tensor rq = by_head(q, queries, row, shape.heads, shape.width);
    const at::Tensor rk = by_head(k, keys, row, shape.heads, shape.width);
    const at::Tensor rv = by_head(v, keys, row, shape.heads, shape.width);
    at::Tensor scores = at::matmul(rq, rk.transpose(1, 2)) * scale;
    if (shape.causal)
      scores = scores + causal_bias(queries.length(row), keys.length(row), q.device());
    at::Tensor p = at::softmax(scores, -1);
    if (dropout) p = kept_probabilities(shape, random, layer, row, dropout, p);
    if (tape != nullptr) kept.push_back(p.reshape({-1}));
    put_back(at::matmul(dropout ? dropped(p, dropout.scale) : p, rv), queries, row, shape.width,
             context);
  }
  if (tape != nullptr) *tape = {at::cat(kept), dropout.scale};
  return context;
}

void attention_backward(const AttentionShape& shape, const RowLayout& queries,
                        const RowLayout& keys, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, const AttentionTape& tape, const at::Tensor& dcontext,
                        at::Tensor dq, at::Tensor dk, at::Tensor dv) {
  const double scale = 1 / std::sqrt(static_cast<double>(shape.width));
  std::int64_t block = 0;
  for (std::int64_t row = 0; row < keys.rows(); ++row) {
    const std::int64_t nq = queries.length(row), nk = keys.length(row);
    const at::Tensor rq = by_head(q, queries, row, shape.heads, shape.width);
    const at::Tensor rk = by_head(k, keys, row, shape.heads, shape.width);
    const at::Tensor rv = by_head(v, keys, row, shape.heads, shape.width);
    const at::Tensor g = by_head(dcontext, queries, row, shape.heads, shape.width);
    const at::Tensor p =
        tape.probabilities.narrow(0, block, shape.heads * nq * nk).view({shape.heads, nq, nk});
    block += shape.heads * nq * nk;
    const at::Tensor used = dropped(p, tape.scale);
    const at::Tensor dused = at::matmul(g, rv.transpose(1, 2));
    // Of softmax's result before dropout: what was dropped has none.
    const at::Tensor dp = at::where(at::signbit(p), at::zeros({}, p.options()), dused * tape.scale);
    const at::Tensor size = p.abs();
    const at::Tensor dscores = size * (dp - (size * dp).sum(-1, true)) * scale;
    put_back(at::matmul(used.transpose(1, 2), g), keys, row, shape.width, dv);
    put_back(at::matmul(dscores, rk), queries, row, shape.width, dq);
    put_back(at::matmul(dscores.transpose(1, 2), rq), keys, row, shape.width, dk);
  }
}

at::Tensor lines_of(const at::Tensor& table, std::span<const std::int64_t> lines) {
  return at::index_select(table, 0, index_tensor(lines, table.device()));
}

void add_to_lines(at::Tensor table, std::span<const std::int64_t> lines, const at::Tensor& from) {
  table.index_add_(0, index_tensor(lines, table.device()), from);
}

void adamw(const kernels::AdamW& o, const at::Tensor& g, at::Tensor p, at::Tensor m, at::Tensor v) {
  m.mul_(o.beta1).add_(g, 1.0 - o.beta1);
  v.mul_(o.beta2).addcmul_(g, g, 1.0 - o.beta2);
  p.mul_(1.0 - static_cast<double>(o.lr) * o.decay);
  p.addcdiv_(m, v.sqrt().div_(std::sqrt(o.correction2)).add_(o.epsilon),
             -static_cast<double>(o.lr) / o.correction1);
}

}  // namespace plain
}  // namespace ymir
