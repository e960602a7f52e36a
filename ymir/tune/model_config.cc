#include "ymir/tune/model_config.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "ymir/base/json.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxConfig = 4u << 20;
constexpr int kMaxWidth = 1 << 16;
constexpr int kMaxPositions = 1 << 24;

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Result<int> size_field(const Json& config, const char* key, std::optional<int> fallback, int low,
                       int high) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) {
    if (fallback) return *fallback;
    return refused(fmt::format("{} is missing", key));
  }
  if (!found->is_number_integer() || found->get<std::int64_t>() < low ||
      found->get<std::int64_t>() > high)
    return refused(
        fmt::format("{} {} is not a number from {} to {}", key, canonical(*found), low, high));
  return found->get<int>();
}

Result<double> real_field(const Json& config, const char* key, double fallback, double low,
                          double high) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return fallback;
  if (!found->is_number() || !(found->get<double>() >= low) || !(found->get<double>() < high))
    return refused(
        fmt::format("{} {} is not a number in [{}, {})", key, canonical(*found), low, high));
  return found->get<double>();
}

// A setting of which only one value is built.
Result<> only(const Json& config, const char* key, const Json& built) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null() || *found == built) return Ok{};
  return refused(
      fmt::format("{} {} is not supported (known: {})", key, canonical(*found), canonical(built)));
}

Result<std::vector<std::string>> labels_of(const Json& config) {
  std::vector<std::string> labels;
  const auto found = config.find("id2label");
  if (found == config.end() || found->is_null()) return labels;
  if (!found->is_object()) return refused("id2label is not a map");
  for (std::size_t i = 0; i < found->size(); ++i) {
    const auto entry = found->find(std::to_string(i));
    if (entry == found->end() || !entry->is_string())
      return refused(fmt::format("id2label has {} entries and no text for {}", found->size(), i));
    labels.push_back(entry->get<std::string>());
  }
  return labels;
}

Result<std::string> text_field(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::string();
  if (!found->is_string()) return refused(fmt::format("{} {} is no text", key, canonical(*found)));
  return found->get<std::string>();
}

// What the configuration says of a head, and `ymir merge` of the adapter that went in.
Result<> read_head(const Json& config, ModelConfig& model) {
  YMIR_TRY_ASSIGN(model.labels, labels_of(config));
  YMIR_TRY_ASSIGN(model.problem_type, text_field(config, "problem_type"));
  YMIR_TRY_ASSIGN(model.trained_length, size_field(config, "ymir_max_length", 0, 0, kMaxPositions));
  YMIR_TRY_ASSIGN(model.prompt_template, text_field(config, "ymir_template"));
  return Ok{};
}

Result<bool> flag_field(const Json& config, const char* key, bool fallback) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return fallback;
  if (!found->is_boolean())
    return refused(fmt::format("{} {} is not true or false", key, canonical(*found)));
  return found->get<bool>();
}

Result<Activation> activation_field(const Json& config, const char* key, const char* fallback) {
  constexpr std::array<std::pair<const char*, Activation>, 7> kKnown = {
      {{"gelu", Activation::kGelu},
       {"gelu_new", Activation::kGeluTanh},
       {"gelu_pytorch_tanh", Activation::kGeluTanh},
       {"gelu_fast", Activation::kGeluTanh},
       {"relu", Activation::kRelu},
       {"silu", Activation::kSilu},
       {"swish", Activation::kSilu}}};
  const Json value = config.value(key, Json(fallback));
  for (const auto& [name, activation] : kKnown)
    if (value == name) return activation;
  return refused(
      fmt::format("{} {} is not supported (known: gelu, gelu_new, gelu_pytorch_tanh, relu, silu)",
                  key, canonical(value)));
}

// Names of the same sizes in a family's config.json.
struct SizeNames {
  const char* hidden = "hidden_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* intermediate = "intermediate_size";
};

Result<> read_sizes(const Json& config, const SizeNames& names, ModelConfig& model) {
  YMIR_TRY_ASSIGN(model.hidden_size, size_field(config, names.hidden, {}, 1, kMaxWidth));
  YMIR_TRY_ASSIGN(model.num_layers, size_field(config, names.layers, {}, 1, 1024));
  YMIR_TRY_ASSIGN(model.num_heads, size_field(config, names.heads, {}, 1, 1024));
  YMIR_TRY_ASSIGN(model.intermediate_size,
                  size_field(config, names.intermediate, {}, 1, 8 * kMaxWidth));
  YMIR_TRY_ASSIGN(model.num_kv_heads,
                  size_field(config, "num_key_value_heads", model.num_heads, 1, model.num_heads));
  if (model.num_heads % model.num_kv_heads != 0)
    return refused(fmt::format("num_attention_heads {} is no multiple of num_key_value_heads {}",
                               model.num_heads, model.num_kv_heads));
  YMIR_TRY_ASSIGN(model.head_width, size_field(config, "head_dim", 0, 1, kMaxWidth));
  if (model.head_width == 0 && model.hidden_size % model.num_heads != 0)
    return refused(fmt::format("{} {} is no multiple of {} {}", names.hidden, model.hidden_size,
                               names.heads, model.num_heads));
  if (model.head_width == 0) model.head_width = model.hidden_size / model.num_heads;
  return read_head(config, model);
}

Result<> read_vocabulary(const Json& config, ModelConfig& model, std::optional<int> pad) {
  YMIR_TRY_ASSIGN(model.vocabulary_size, size_field(config, "vocab_size", {}, 1, 1 << 24));
  YMIR_TRY_ASSIGN(model.max_positions,
                  size_field(config, "max_position_embeddings", {}, 1, kMaxPositions));
  YMIR_TRY_ASSIGN(model.pad_token, size_field(config, "pad_token_id", pad, pad == -1 ? -1 : 0,
                                              model.vocabulary_size - 1));
  return Ok{};
}

Result<> read_bert(const Json& config, ModelConfig& model) {
  YMIR_TRY(only(config, "position_embedding_type", "absolute"));
  YMIR_TRY(only(config, "is_decoder", false));
  YMIR_TRY(only(config, "add_cross_attention", false));
  YMIR_TRY(read_sizes(config, {}, model));
  YMIR_TRY(read_vocabulary(config, model, model.family == "roberta" ? 1 : 0));
  YMIR_TRY_ASSIGN(model.activation, activation_field(config, "hidden_act", "gelu"));
  YMIR_TRY_ASSIGN(model.num_token_types, size_field(config, "type_vocab_size", 2, 1, 1024));
  YMIR_TRY_ASSIGN(model.layer_norm_epsilon, real_field(config, "layer_norm_eps", 1e-12, 0, 1));
  YMIR_TRY_ASSIGN(model.hidden_dropout, real_field(config, "hidden_dropout_prob", 0.1, 0, 1));
  YMIR_TRY_ASSIGN(model.attention_dropout,
                  real_field(config, "attention_probs_dropout_prob", 0.1, 0, 1));
  YMIR_TRY_ASSIGN(model.classifier_dropout,
                  real_field(config, "classifier_dropout", model.hidden_dropout, 0, 1));
  if (model.family != "roberta") return Ok{};
  // Positions count from after the padding's own, which takes places of the table.
  model.position_offset = model.pad_token + 1;
  model.max_positions -= model.position_offset;
  if (model.max_positions < 1)
    return refused(fmt::format("max_position_embeddings {} leaves no place behind pad_token_id {}",
                               model.max_positions + model.position_offset, model.pad_token));
  return Ok{};
}

Result<> read_distilbert(const Json& config, ModelConfig& model) {
  YMIR_TRY(read_sizes(config, {"dim", "n_layers", "n_heads", "hidden_dim"}, model));
  YMIR_TRY(read_vocabulary(config, model, 0));
  YMIR_TRY_ASSIGN(model.activation, activation_field(config, "activation", "gelu"));
  model.num_token_types = 0;
  YMIR_TRY_ASSIGN(model.hidden_dropout, real_field(config, "dropout", 0.1, 0, 1));
  YMIR_TRY_ASSIGN(model.attention_dropout, real_field(config, "attention_dropout", 0.1, 0, 1));
  YMIR_TRY_ASSIGN(model.classifier_dropout, real_field(config, "seq_classif_dropout", 0.2, 0, 1));
  return Ok{};
}

Result<std::vector<double>> factors_of(const Json& rope, const char* key, int pairs) {
  const Json list = rope.value(key, Json());
  if (!list.is_array() || list.size() != static_cast<std::size_t>(pairs))
    return refused(fmt::format("{} is not a list of {} numbers", key, pairs));
  std::vector<double> factors;
  for (const Json& value : list) {
    if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>()))
      return refused(fmt::format("{} holds what is no number above 0", key));
    factors.push_back(value.get<double>());
  }
  return factors;
}

// YaRN (Peng et al., 2023) and LongRoPE (Ding et al., 2024): their factors, and by how much cosine
// and sine grow with the stretched length.
Result<> read_long_context(const Json& config, const Json& rope, int max_positions, int head_width,
                           RotaryConfig& rotary) {
  constexpr const char* kTrained = "original_max_position_embeddings";
  YMIR_TRY_ASSIGN(const int outside, size_field(config, kTrained, max_positions, 1, kMaxPositions));
  YMIR_TRY_ASSIGN(rotary.original_positions, size_field(rope, kTrained, outside, 1, kMaxPositions));
  const double stretched =
      static_cast<double>(max_positions) / static_cast<double>(rotary.original_positions);
  YMIR_TRY_ASSIGN(rotary.factor, real_field(rope, "factor", stretched, 1e-6, 1e6));
  const bool given = !rope.value("attention_factor", Json()).is_null();
  if (given) {
    YMIR_TRY_ASSIGN(rotary.attention_factor, real_field(rope, "attention_factor", 1, 1e-6, 1e6));
  }
  if (rotary.scaling == RotaryConfig::Scaling::kLongRope) {
    YMIR_TRY_ASSIGN(rotary.short_factors, factors_of(rope, "short_factor", head_width / 2));
    YMIR_TRY_ASSIGN(rotary.long_factors, factors_of(rope, "long_factor", head_width / 2));
    if (!given && rotary.factor > 1)
      rotary.attention_factor =
          std::sqrt(1 + std::log(rotary.factor) / std::log(rotary.original_positions));
    return Ok{};
  }
  YMIR_TRY_ASSIGN(rotary.beta_fast, real_field(rope, "beta_fast", 32, 1e-6, 1e6));
  YMIR_TRY_ASSIGN(rotary.beta_slow, real_field(rope, "beta_slow", 1, 1e-6, 1e6));
  YMIR_TRY_ASSIGN(rotary.whole_dimensions, flag_field(rope, "truncate", true));
  YMIR_TRY_ASSIGN(const double scale, real_field(rope, "mscale", 0, 0, 1e6));
  YMIR_TRY_ASSIGN(const double all, real_field(rope, "mscale_all_dim", 0, 0, 1e6));
  const auto grown = [&rotary](double by) {
    return rotary.factor <= 1 ? 1.0 : 0.1 * by * std::log(rotary.factor) + 1;
  };
  if (!given) rotary.attention_factor = scale > 0 && all > 0 ? grown(scale) / grown(all) : grown(1);
  return Ok{};
}

// Both forms: rope_parameters of today's files, rope_theta and rope_scaling of older ones.
Result<RotaryConfig> read_rotary(const Json& config, int max_positions, int head_width) {
  RotaryConfig rotary;
  YMIR_TRY_ASSIGN(rotary.theta, real_field(config, "rope_theta", 10000.0, 1e-3, 1e12));
  rotary.original_positions = max_positions;
  Json rope = config.value("rope_parameters", Json());
  if (rope.is_null()) rope = config.value("rope_scaling", Json());
  if (rope.is_null()) return rotary;
  if (!rope.is_object()) return refused("rope_parameters is not a map");
  YMIR_TRY_ASSIGN(rotary.theta, real_field(rope, "rope_theta", rotary.theta, 1e-3, 1e12));
  YMIR_TRY(only(rope, "partial_rotary_factor", 1.0));
  const Json type = rope.value("rope_type", rope.value("type", Json("default")));
  using Scaling = RotaryConfig::Scaling;
  if (type == "linear") {
    rotary.scaling = Scaling::kLinear;
  } else if (type == "dynamic") {
    rotary.scaling = Scaling::kDynamic;
  } else if (type == "llama3") {
    rotary.scaling = Scaling::kLlama3;
    YMIR_TRY_ASSIGN(rotary.original_positions,
                    size_field(rope, "original_max_position_embeddings", {}, 1, kMaxPositions));
    YMIR_TRY_ASSIGN(rotary.low_factor, real_field(rope, "low_freq_factor", 1, 1e-6, 1e6));
    YMIR_TRY_ASSIGN(rotary.high_factor, real_field(rope, "high_freq_factor", 4, 1e-6, 1e6));
    if (!(rotary.high_factor > rotary.low_factor))
      return refused("high_freq_factor is not above low_freq_factor");
  } else if (type == "yarn" || type == "longrope") {
    rotary.scaling = type == "yarn" ? Scaling::kYarn : Scaling::kLongRope;
    YMIR_TRY(read_long_context(config, rope, max_positions, head_width, rotary));
    return rotary;
  } else if (type != "default") {
    return refused(fmt::format(
        "rope_type {} is not supported (known: default, linear, dynamic, llama3, yarn, longrope)",
        canonical(type)));
  }
  YMIR_TRY_ASSIGN(rotary.factor, real_field(rope, "factor", 1, 1e-6, 1e6));
  return rotary;
}

Result<> read_llama(const Json& config, ModelConfig& model) {
  YMIR_TRY(only(config, "pretraining_tp", 1));
  YMIR_TRY(read_sizes(config, {}, model));
  YMIR_TRY(read_vocabulary(config, model, -1));
  YMIR_TRY_ASSIGN(model.activation, activation_field(config, "hidden_act", "silu"));
  model.num_token_types = 0;
  model.norm = NormKind::kRmsNorm;
  model.norm_first = model.gated = model.causal = true;
  YMIR_TRY_ASSIGN(const bool attention_bias, flag_field(config, "attention_bias", false));
  model.attention_in_bias = model.attention_out_bias = attention_bias;
  YMIR_TRY_ASSIGN(model.ffn_bias, flag_field(config, "mlp_bias", false));
  YMIR_TRY_ASSIGN(model.tied_output, flag_field(config, "tie_word_embeddings", false));
  YMIR_TRY_ASSIGN(model.layer_norm_epsilon, real_field(config, "rms_norm_eps", 1e-6, 0, 1));
  YMIR_TRY_ASSIGN(model.attention_dropout, real_field(config, "attention_dropout", 0, 0, 1));
  model.hidden_dropout = model.classifier_dropout = 0;
  if (model.head_width % 2 != 0)
    return refused(
        fmt::format("head_dim {} is odd, rotary positions turn pairs", model.head_width));
  YMIR_TRY_ASSIGN(model.rotary, read_rotary(config, model.max_positions, model.head_width));
  return Ok{};
}

Result<> read_vit(const Json& config, ModelConfig& model) {
  YMIR_TRY(read_sizes(config, {}, model));
  YMIR_TRY_ASSIGN(model.activation, activation_field(config, "hidden_act", "gelu"));
  YMIR_TRY_ASSIGN(model.image_size, size_field(config, "image_size", 224, 1, 1 << 14));
  YMIR_TRY_ASSIGN(model.patch_size, size_field(config, "patch_size", 16, 1, 1 << 12));
  YMIR_TRY_ASSIGN(model.num_channels, size_field(config, "num_channels", 3, 1, 16));
  if (model.image_size % model.patch_size != 0)
    return refused(fmt::format("image_size {} is no multiple of patch_size {}", model.image_size,
                               model.patch_size));
  model.num_token_types = 0;
  model.norm_first = true;
  model.max_positions = model.patches() + 1;
  YMIR_TRY_ASSIGN(model.attention_in_bias, flag_field(config, "qkv_bias", true));
  YMIR_TRY_ASSIGN(model.layer_norm_epsilon, real_field(config, "layer_norm_eps", 1e-12, 0, 1));
  YMIR_TRY_ASSIGN(model.hidden_dropout, real_field(config, "hidden_dropout_prob", 0, 0, 1));
  YMIR_TRY_ASSIGN(model.attention_dropout,
                  real_field(config, "attention_probs_dropout_prob", 0, 0, 1));
  model.classifier_dropout = 0;
  return Ok{};
}

constexpr std::array<std::pair<const char*, Result<> (*)(const Json&, ModelConfig&)>, 5> kReaders =
    {{{"bert", read_bert},
      {"roberta", read_bert},
      {"distilbert", read_distilbert},
      {"llama", read_llama},
      {"vit", read_vit}}};

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view config_json) {
  YMIR_TRY_ASSIGN(const Json config,
                  parse_json(config_json, {.max_bytes = kMaxConfig, .max_depth = 16}));
  if (!config.is_object()) return refused("not an object");
  const Json type = config.value("model_type", Json());
  for (const auto& [name, reader] : kReaders) {
    if (type != name) continue;
    ModelConfig model;
    model.family = name;
    YMIR_TRY(reader(config, model));
    return model;
  }
  return refused(
      fmt::format("architecture {} is not supported (known: bert, roberta, distilbert, llama, vit)",
                  canonical(type)));
}

}  // namespace ymir
