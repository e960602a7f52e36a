// ModelConfig: a backbone's architecture as data, from its config.json. All families are one stack
// of blocks; what makes them differ is said by these fields (norm, place of the norm, positions,
// activation, gate, attention) and by the names of their tensors (model/family.h).
//
// To add a family: its reader in model_config.cc, its names in model/family.cc, reference values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

enum class Activation { kGelu, kGeluTanh, kRelu, kSilu };  // kGelu: exact, by erf
enum class NormKind { kLayerNorm, kRmsNorm };

// Rotary positions (Su et al., 2021) and how they are stretched beyond the trained length.
struct RotaryConfig {
  enum class Scaling { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongRope };
  double theta = 0;  // 0: no rotary positions
  Scaling scaling = Scaling::kNone;
  double factor = 1;
  double low_factor = 1, high_factor = 4;  // kLlama3
  // Trained length; kDynamic: max_positions.
  int original_positions = 0;
  double attention_factor = 1;           // kYarn, kLongRope: of cosine and sine
  double beta_fast = 32, beta_slow = 1;  // kYarn: turns within the trained length
  bool whole_dimensions = true;          // kYarn: the ramp begins and ends at whole numbers
  std::vector<double> short_factors{}, long_factors{};  // kLongRope: one a pair
};

struct ModelConfig {
  std::string family{};  // bert roberta distilbert llama vit
  int vocabulary_size = 0;
  int hidden_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;  // fewer than num_heads: grouped-query attention
  int head_width = 0;
  int intermediate_size = 0;
  int max_positions = 0;    // tokens a row may have
  int position_offset = 0;  // RoBERTa: the first token's position
  int num_token_types = 2;  // 0: none
  Activation activation = Activation::kGelu;
  NormKind norm = NormKind::kLayerNorm;
  bool norm_first = false;  // before each part of a block, and one after the last block
  bool gated = false;       // SwiGLU: up * f(gate)
  bool causal = false;
  bool attention_in_bias = true, attention_out_bias = true, ffn_bias = true;
  bool tied_output = false;  // causal LM: the output layer is the embedding
  RotaryConfig rotary{};
  double layer_norm_epsilon = 1e-12;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double classifier_dropout = 0.1;    // the config's own, else hidden_dropout
  int pad_token = 0;                  // -1: none
  std::vector<std::string> labels{};  // id2label, in order; empty when the file names none
  // What the head is for, in transformers' words; empty: not said.
  std::string problem_type{};
  // Of a merged model, how its adapter was trained: the longest row, conversations' template.
  int trained_length = 0;
  std::string prompt_template{};
  int image_size = 0, patch_size = 0, num_channels = 0;  // vit
  bool is_image() const { return patch_size > 0; }
  int patches() const { return (image_size / patch_size) * (image_size / patch_size); }
};

// From the text of config.json. Other architectures, activations and position kinds are refused by
// name, sizes by range.
Result<ModelConfig> parse_model_config(std::string_view config_json);

}  // namespace ymir
