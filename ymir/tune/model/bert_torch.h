// The BERT encoder (post-LayerNorm; MiniLM is one), ragged, with its backward. Equal to
// transformers' BertModel within 1e-4 (tests/reference). A layer is a struct of linear sites;
// what is trained sits in LoRA slots at those sites, and nothing else has a gradient.
//
// Shapes: N tokens of R rows in all, H wide. The result is the first token's vector of each row:
// in the last layer only that line is computed beyond keys and values (17% of the layer's work).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "ymir/tune/petl/lora_torch.h"

namespace ymir {

enum class Site { kQuery, kKey, kValue, kAttentionOut, kFfnIn, kFfnOut };
inline constexpr std::size_t kNumSites = 6;

struct EncoderShape {
  int layers = 0, hidden = 0, heads = 0, ffn = 0;
  int vocabulary = 0, positions = 0, token_types = 0;
};

struct EncoderLayer {
  Linear qkv{};  // [3H, H]: query, key, value behind one another
  Linear attention_out{}, ffn_in{}, ffn_out{};
  NormWeights attention_norm{}, ffn_norm{};
};

struct Encoder {
  EncoderShape shape{};
  at::Tensor words{}, positions{}, token_types{};  // f32 [., H]
  NormWeights embedding_norm{};
  std::vector<EncoderLayer> layers{};
  Linear pooler{};  // weight undefined: the file has none
};

// One slot per layer and site; an empty slot is a plain frozen map.
using SlotTable = std::vector<std::array<LoraSlot, kNumSites>>;
// Where gradients of the slots go; same positions, views of one flat buffer.
struct SlotGradient {
  at::Tensor a{}, b{};
};
using GradientTable = std::vector<std::array<SlotGradient, kNumSites>>;

struct EncoderInput {
  RowLayout layout{};
  std::vector<std::int32_t> ids{};    // [N], < vocabulary
  std::vector<std::int32_t> types{};  // [N] or empty: all 0
};

struct EncoderOptions {
  bool keep_tape = false;     // a backward will follow
  bool keep_inputs = false;   // of every site, for an observer
  kernels::Dropout hidden{};  // no keys: none is applied
  kernels::Dropout attention{};
  const RandomKeys* keys = nullptr;
};

struct LayerTape {
  at::Tensor x{}, first{};  // the layer's input, all lines and (last layer) the first ones
  at::Tensor q{}, k{}, v{}, context{}, middle{}, slope{}, hidden{};
  AttentionTape attention{};
  NormTape attention_norm{}, ffn_norm{};
  std::array<LoraTape, kNumSites> lora{};
};
struct EncoderTape {
  RowLayout layout{};
  std::vector<LayerTape> layers{};  // below the lowest trained layer: empty
  int lowest = 0;
};

// Sees each site's input and output gradient in the backward: lines are tokens, or the rows' first
// tokens when `first_only`.
using SiteObserver = std::function<void(int layer, Site site, bool first_only, const at::Tensor& x,
                                        const at::Tensor& dy)>;

// First token's vectors [R, H].
at::Tensor encode(const Encoder& encoder, const SlotTable& slots, const EncoderInput& input,
                  const EncoderOptions& options, EncoderTape* tape);
// Adds to the gradients; `observer` may be empty.
void encode_backward(const Encoder& encoder, const SlotTable& slots, EncoderTape& tape,
                     const at::Tensor& dfirst, GradientTable* gradients,
                     const SiteObserver& observer);

}  // namespace ymir
