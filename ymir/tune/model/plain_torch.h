// The operations of ops_torch.h written with the library's own tensor operations: what runs where
// the CPU kernels can't (a GPU), and the readable reference beside them. Same arguments, same
// results within rounding; random decisions are the CPU's, so a mask is the same on every device.
#pragma once

#include "ymir/tune/model/encoder_torch.h"

namespace ymir {

// Where a model's weights lie.
at::Device device_of(const Encoder& encoder);
// Whether an operation on this tensor takes the plain form: not on the CPU, or forced for a test.
bool is_plain(const at::Tensor& x);
// While one lives, CPU tensors take the plain form, too. For tests, one thread.
class ForcePlain {
 public:
  ForcePlain();
  ~ForcePlain();
  ForcePlain(const ForcePlain&) = delete;
  ForcePlain& operator=(const ForcePlain&) = delete;
};

namespace plain {

at::Tensor masked(const at::Tensor& x, const at::Tensor& keep, float scale);
at::Tensor norm_lines(const NormWeights& norm, const at::Tensor& x, NormTape* tape);
at::Tensor residual_add(const at::Tensor& bias, at::Tensor z, const at::Tensor& residual,
                        const at::Tensor& keep, float scale);
at::Tensor residual_norm(const NormWeights& norm, const at::Tensor& bias, at::Tensor z,
                         const at::Tensor& residual, const at::Tensor& keep, float scale,
                         NormTape* tape);
std::pair<at::Tensor, at::Tensor> residual_norm_backward(const NormWeights& norm,
                                                         const NormTape& tape, const at::Tensor& dy,
                                                         const at::Tensor& dsum);
at::Tensor activation(Activation f, bool gated, const at::Tensor& z, const at::Tensor& bias,
                      at::Tensor* slope);
at::Tensor activation_backward(bool gated, const at::Tensor& dh, const at::Tensor& slope);
void rotate(const RotaryTable& table, std::span<const std::int32_t> positions,
            std::int64_t head_width, bool back, at::Tensor x);
at::Tensor attention(const AttentionShape& shape, const RowLayout& queries, const RowLayout& keys,
                     const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     kernels::Dropout dropout, const RandomKeys& random, int layer,
                     AttentionTape* tape);
void attention_backward(const AttentionShape& shape, const RowLayout& queries,
                        const RowLayout& keys, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, const AttentionTape& tape, const at::Tensor& dcontext,
                        at::Tensor dq, at::Tensor dk, at::Tensor dv);
// Lines of a table, and their gradient.
at::Tensor lines_of(const at::Tensor& table, std::span<const std::int64_t> lines);
void add_to_lines(at::Tensor table, std::span<const std::int64_t> lines, const at::Tensor& from);
void adamw(const kernels::AdamW& options, const at::Tensor& g, at::Tensor p, at::Tensor m,
           at::Tensor v);

}  // namespace plain
}  // namespace ymir
