// A backbone's sizes and weights, as the stack of blocks reads them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "ymir/tune/model/backbone_image.h"
#include "ymir/tune/model/ops_torch.h"

namespace ymir {

struct EncoderShape {
  int layers = 0, hidden = 0, heads = 0, ffn = 0;
  int vocabulary = 0, positions = 0, token_types = 0;
  int kv_heads = 0, head_width = 0;
  std::string family = "bert";
  Activation activation = Activation::kGelu;
  bool norm_first = false, gated = false, causal = false;
  int position_offset = 0;
  RotaryConfig rotary{};
  int patch = 0, channels = 0;  // images
  std::int64_t query_width() const { return std::int64_t{heads} * head_width; }
  std::int64_t kv_width() const { return std::int64_t{kv_heads} * head_width; }
  std::int64_t width_in(Site site) const;
  std::int64_t width_out(Site site) const;
};
EncoderShape shape_of(const ModelConfig& config);

struct EncoderLayer {
  Linear qkv{};  // [(heads + 2 kv_heads) head_width, H]: query, key, value behind one another
  Linear attention_out{};
  Linear ffn_in{};  // [ffn, H]; gated: [2 ffn, H], up and gate behind one another
  Linear ffn_out{};
  NormWeights attention_norm{}, ffn_norm{};
};
// The three of a layer's qkv.
struct ProjectionWeights {
  Linear query{}, key{}, value{};
};
ProjectionWeights projections_of(const EncoderLayer& layer, const EncoderShape& shape);

struct Encoder {
  EncoderShape shape{};
  at::Tensor words{};                     // [., H] f32, or as the model's file is
  at::Tensor positions{}, token_types{};  // f32 [., H]
  Linear patches{};                       // images: [H, channels patch patch]
  at::Tensor class_token{};               // images: [1, H]
  NormWeights embedding_norm{};           // undefined: none
  std::vector<EncoderLayer> layers{};
  NormWeights final_norm{};  // of norm-first stacks
  Linear pooler{};           // weight undefined: the file has none
  Linear output{};           // of causal LMs: [vocabulary, H]; tied: the words
  std::shared_ptr<const std::vector<ImageEntry>> entries{};  // the weights' names
};

}  // namespace ymir
