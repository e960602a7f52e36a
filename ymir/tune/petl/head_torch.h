// Head: first-token vectors -> pooler (tanh) -> dropout -> classifier. The classifier is always the
// job's own; the pooler is frozen when the backbone's file has one, else it is created from the
// job's seed, trained and exported with the adapter (tuner.md 3.1).
#pragma once

#include "ymir/tune/model/bert_torch.h"
#include "ymir/tune/petl/parameters_torch.h"

namespace ymir {

struct Head {
  int outputs = 0;
  bool own_pooler = false;
  ParameterLayout layout{};  // [pooler weight, bias,] classifier weight, bias
};
Head make_head(const Encoder& encoder, int outputs);
// Normal with deviation 0.02 (transformers' initializer_range), biases 0; from (seed, name).
at::Tensor initial_head(const Head& head, std::uint64_t seed);

struct HeadTape {
  at::Tensor first{}, pooled{}, input{}, keep{};
  float scale = 1;
};
// first [R, H] -> logits [R, outputs]. `keys` null: no dropout.
at::Tensor head_forward(const Head& head, const at::Tensor& values, const Encoder& encoder,
                        const at::Tensor& first, const RandomKeys* keys, kernels::Dropout dropout,
                        HeadTape* tape);
// Adds to `gradient` (flat) when defined; returns the gradient at `first`.
at::Tensor head_backward(const Head& head, const at::Tensor& values, const Encoder& encoder,
                         const HeadTape& tape, const at::Tensor& dlogits, at::Tensor gradient);
// What the classifier reads: tanh(pooler(first)) [R, H]. For features of a frozen backbone.
at::Tensor pooled_features(const Head& head, const at::Tensor& values, const Encoder& encoder,
                           const at::Tensor& first);

// Fills `to` with draws that depend on (seed, name, position) only.
void fill_normal(at::Tensor to, std::uint64_t seed, const std::string& name, double deviation);
void fill_uniform(at::Tensor to, std::uint64_t seed, const std::string& name, double bound);

}  // namespace ymir
