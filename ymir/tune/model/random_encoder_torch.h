// For tests: a small encoder with random weights, and batches for it.
#pragma once

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "ymir/base/rng.h"
#include "ymir/tune/model/encoder_torch.h"
#include "ymir/tune/petl/head_torch.h"

namespace ymir::testing {

inline at::Tensor random_matrix(at::IntArrayRef shape, const std::string& name,
                                double deviation = 0.08) {
  at::Tensor t = at::zeros(shape, at::kFloat);
  fill_normal(t, 1, name, deviation);
  return t;
}

inline Encoder random_encoder(EncoderShape shape = {2, 64, 4, 128, 100, 64, 2, 4, 16}) {
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    return Linear{random_matrix({out, in}, name), {}, random_matrix({out}, name + "b", 0.02)};
  };
  const auto norm = [&](const std::string& name) {
    return NormWeights{random_matrix({shape.hidden}, name).add_(1.0),
                       random_matrix({shape.hidden}, name + "b"), 1e-12};
  };
  Encoder e;
  e.shape = shape;
  e.words = random_matrix({shape.vocabulary, shape.hidden}, "words", 1);
  e.positions = random_matrix({shape.positions, shape.hidden}, "positions", 0.5);
  e.token_types = random_matrix({shape.token_types, shape.hidden}, "types", 0.5);
  e.embedding_norm = norm("embedding");
  for (int i = 0; i < shape.layers; ++i) {
    const std::string at = std::to_string(i);
    e.layers.push_back(
        {linear("qkv" + at, 3 * shape.hidden, shape.hidden),
         linear("o" + at, shape.hidden, shape.hidden), linear("in" + at, shape.ffn, shape.hidden),
         linear("out" + at, shape.hidden, shape.ffn), norm("n1" + at), norm("n2" + at)});
  }
  e.pooler = linear("pooler", shape.hidden, shape.hidden);
  return e;
}

inline EncoderInput random_input(const std::vector<int>& lengths, std::uint64_t seed = 3) {
  Rng rng(seed);
  EncoderInput input;
  for (const int length : lengths) {
    input.layout.offsets.push_back(input.layout.offsets.back() + length);
    for (int t = 0; t < length; ++t) input.ids.push_back(static_cast<std::int32_t>(rng.below(100)));
  }
  return input;
}

}  // namespace ymir::testing
