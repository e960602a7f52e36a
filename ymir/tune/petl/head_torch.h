// Head: what lies between the encoder's vectors and the outputs, as the family has it
// (HeadKind in model/family.h). The classifier is always the job's own; BERT's pooler is frozen
// when the backbone's file has one; every other dense layer is created from the job's seed, trained
// and exported with the adapter.
#pragma once

#include "ymir/tune/model/encoder_torch.h"
#include "ymir/tune/petl/parameters_torch.h"

namespace ymir {

struct Head {
  int outputs = 0;
  HeadKind kind = HeadKind::kPooler;
  bool own_dense = false;
  bool bias = true;          // of the classifier
  ParameterLayout layout{};  // [dense weight, bias,] classifier weight [, bias]
  std::size_t classifier() const { return own_dense ? 2 : 0; }  // its weight's position
};
Head make_head(const Encoder& encoder, int outputs);
// A language model's: no tensors of its own.
inline Head no_head() { return {.kind = HeadKind::kClassifier}; }
// Normal with deviation 0.02 (transformers' initializer_range), biases 0; from (seed, name).
at::Tensor initial_head(const Head& head, std::uint64_t seed);

struct HeadTape {
  at::Tensor first{}, keep_first{};      // what the dense layer read
  at::Tensor pooled{}, input{}, keep{};  // its result, and what the classifier read
  float scale = 1;
};
// first [R, H] -> logits [R, outputs]. `keys` null: no dropout.
at::Tensor head_forward(const Head& head, const at::Tensor& values, const Encoder& encoder,
                        const at::Tensor& first, const RandomKeys* keys, kernels::Dropout dropout,
                        HeadTape* tape);
// Adds to `gradient` (flat) when defined and to the frozen pooler's where that is trained (null:
// not); returns the gradient at `first`.
at::Tensor head_backward(const Head& head, const at::Tensor& values, const Encoder& encoder,
                         const HeadTape& tape, const at::Tensor& dlogits, at::Tensor gradient,
                         Linear* pooler = nullptr);
// What the classifier reads [R, H], without dropout. For features of a frozen backbone.
at::Tensor pooled_features(const Head& head, const at::Tensor& values, const Encoder& encoder,
                           const at::Tensor& first);

// Fills `to` with draws that depend on (seed, name, position) only.
void fill_normal(at::Tensor to, std::uint64_t seed, const std::string& name, double deviation);
void fill_uniform(at::Tensor to, std::uint64_t seed, const std::string& name, double bound);

}  // namespace ymir
