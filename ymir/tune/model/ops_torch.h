// Operations of an encoder layer on tensors, each with its hand-written backward. No autograd: the
// saved values are named, gradients go where the caller says (one buffer per task), and frozen
// weights cost nothing in the backward. Activations are f32, row-major, contiguous unless a stride
// is spoken of; matrix products read bf16 copies of the frozen weights when the site has one. On a
// CPU with matrix units for bf16 they run in bf16; elsewhere in f32, which is as fast and rounds
// less.
// Not thread-safe with itself on the same tensors; parallel inside through at::parallel_for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ymir/tune/model/kernels.h"

namespace ymir {

// Rows of a micro-batch behind one another, no padding: row i is tokens offsets[i]..offsets[i+1].
struct RowLayout {
  std::vector<std::int64_t> offsets{0};
  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::int64_t tokens() const { return offsets.back(); }
  std::int64_t length(std::int64_t row) const {
    return offsets[static_cast<std::size_t>(row) + 1] - offsets[static_cast<std::size_t>(row)];
  }
};
RowLayout one_line_a_row(std::int64_t rows);

// A weight in the form that our own products read (gemm.h), each made at its first use. Shared by
// all copies and slices of its Linear.
struct PackedWeight {
  at::Tensor source{};  // [out, in]
  // Panels of outputs, of each slice that was used: {first, count}. What two slices share is there
  // twice.
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> forward{};
  at::Tensor backward{};  // panels of inputs, for all slices
};

// A frozen linear map y = x W^T + b.
struct Linear {
  at::Tensor weight{};    // [out, in] in f32, or bf16 or f16 as the model's file is
  at::Tensor weight16{};  // the same in bf16; undefined: products in f32
  at::Tensor bias{};      // f32 [out]; undefined: none
  std::shared_ptr<PackedWeight> packed{};  // null: each product puts the weight into that form
  std::int64_t first = 0;                  // its line of the packed weight's source
  const at::Tensor& values() const { return weight16.defined() ? weight16 : weight; }
  Linear slice(std::int64_t begin, std::int64_t count) const;  // of the outputs
};

// Whether products on this tensor run through our own kernel (gemm.h) where they can.
bool has_own_products(const at::Tensor& x);

// A frozen weight as f32; a copy for the moment where it is kept in half precision.
at::Tensor in_f32(const at::Tensor& weight);

// x [N, in] -> [N, out]; without the bias, which the next kernel adds.
at::Tensor product(const at::Tensor& x, const Linear& linear);
at::Tensor product_with_bias(const at::Tensor& x, const Linear& linear);
// dy [N, out] -> dx [N, in]; added to `into` when that is defined.
at::Tensor product_backward(const at::Tensor& dy, const Linear& linear, at::Tensor into = {});

// c = alpha a b + beta c on 2-D tensors of any strides (c: unit stride in one dimension).
void multiply_add(at::Tensor c, const at::Tensor& a, const at::Tensor& b, double alpha,
                  double beta);
at::Tensor times(const at::Tensor& a, const at::Tensor& b);

// Where random decisions of one forward pass come from.
struct RandomKeys {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::span<const std::uint32_t> rows{};  // one per row of the batch
  // One per row too, where the rows come from several jobs; else empty.
  std::span<const std::uint64_t> seeds{};
  std::span<const std::uint32_t> epochs{};
  kernels::DropoutKey key(std::size_t row, std::uint32_t site) const {
    return {seeds.empty() ? seed : seeds[row], rows[row], epochs.empty() ? epoch : epochs[row],
            site};
  }
  RandomKeys part(std::size_t first, std::size_t count) const;
};
// Purposes keep the counters of different uses apart: site = purpose << 24 | layer << 8 | head.
enum class Purpose : std::uint32_t { kEmbedding, kAttention, kAttentionOut, kFfnOut, kHead, kLora };
std::uint32_t random_site(Purpose purpose, int layer, int head = 0);

// keep mask u8 [layout.tokens(), width], every row from its own counters.
at::Tensor row_mask(const RowLayout& layout, std::int64_t width, const RandomKeys& keys,
                    std::uint32_t site, kernels::Dropout dropout);

struct NormWeights {
  at::Tensor gain{}, bias{};  // bias undefined: none
  double epsilon = 1e-12;
  bool centred = true;  // LayerNorm; false: RMSNorm
};
struct NormTape {
  at::Tensor normalised{}, inverse{}, keep{};
  float scale = 1;
};
// norm(x). `tape` null: nothing is kept.
at::Tensor norm_lines(const NormWeights& norm, const at::Tensor& x, NormTape* tape);
// z = residual + dropout(z + bias), in place; returns z. `bias`, `keep` undefined: none.
at::Tensor residual_add(const at::Tensor& bias, at::Tensor z, const at::Tensor& residual,
                        const at::Tensor& keep, float scale);
// norm(residual + dropout(z + bias)); the sum stays in z. `tape` null: nothing is kept.
at::Tensor residual_norm(const NormWeights& norm, const at::Tensor& bias, at::Tensor z,
                         const at::Tensor& residual, const at::Tensor& keep, float scale,
                         NormTape* tape);
// Returns {gradient at z, gradient at the residual}; the same tensor when nothing was dropped.
// `dsum`, when defined, is what flows into the sum beside the norm (blocks that norm first).
std::pair<at::Tensor, at::Tensor> residual_norm_backward(const NormWeights& norm,
                                                         const NormTape& tape, const at::Tensor& dy,
                                                         const at::Tensor& dsum = {});
// Gradients of trained weights: adds to what is defined.
void norm_gradient(const NormTape& tape, const at::Tensor& dy, NormWeights& gradient);
void linear_gradient(const at::Tensor& x, const at::Tensor& dy, Linear& gradient);
// x with what was dropped at 0 and the rest scaled; x itself when `keep` is undefined.
at::Tensor masked(const at::Tensor& x, const at::Tensor& keep, float scale);

// f(z + bias), or with `gated` up * f(gate) of z = [up | gate]. `slope` (may be null) receives the
// derivative by z, as wide as z (gated: those by up and by gate).
at::Tensor activation(Activation f, bool gated, const at::Tensor& z, const at::Tensor& bias,
                      at::Tensor* slope);
// Of the lines of z, into the lines of h and slope from `first` on (CPU, one thread).
void activation_lines(Activation f, bool gated, const at::Tensor& z, const at::Tensor& bias,
                      at::Tensor& h, at::Tensor* slope, std::int64_t first);
// The gradient at z. dh is overwritten unless gated.
at::Tensor activation_backward(bool gated, at::Tensor dh, const at::Tensor& slope);
// Product and activation, line by line while what was computed is in the cache: activation(f,
// gated, product(x, linear), linear.bias, slope), and activation_backward(gated,
// product_backward(dy, linear), slope), bit for bit.
at::Tensor activated_product(const at::Tensor& x, const Linear& linear, Activation f, bool gated,
                             at::Tensor* slope);
at::Tensor activated_product_backward(const at::Tensor& dy, const Linear& linear, bool gated,
                                      const at::Tensor& slope);

// Angles of rotary positions: cosine and sine [positions, head_width / 2].
struct RotaryTable {
  at::Tensor cosine{}, sine{};
};
// Turns each head of x (may be a column slice; one line per position given) by its position's
// angles; `back`: by the negative ones.
void rotate(const RotaryTable& table, std::span<const std::int32_t> positions,
            std::int64_t head_width, bool back, at::Tensor x);

}  // namespace ymir
