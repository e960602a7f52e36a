#include "ymir/tune/model_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/tune/data/file_hash.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxConfig = 4u << 20;
constexpr std::size_t kMaxIndex = 64u << 20;

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

bool exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

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

Result<> read_bert(const Json& config, ModelConfig& model) {
  YMIR_TRY(only(config, "hidden_act", "gelu"));
  YMIR_TRY(only(config, "position_embedding_type", "absolute"));
  YMIR_TRY(only(config, "is_decoder", false));
  YMIR_TRY(only(config, "add_cross_attention", false));
  constexpr int kMaxWidth = 1 << 16;
  YMIR_TRY_ASSIGN(model.vocabulary_size, size_field(config, "vocab_size", {}, 1, 1 << 24));
  YMIR_TRY_ASSIGN(model.hidden_size, size_field(config, "hidden_size", {}, 1, kMaxWidth));
  YMIR_TRY_ASSIGN(model.num_layers, size_field(config, "num_hidden_layers", {}, 1, 1024));
  YMIR_TRY_ASSIGN(model.num_heads, size_field(config, "num_attention_heads", {}, 1, 1024));
  YMIR_TRY_ASSIGN(model.intermediate_size,
                  size_field(config, "intermediate_size", {}, 1, 8 * kMaxWidth));
  YMIR_TRY_ASSIGN(model.max_positions,
                  size_field(config, "max_position_embeddings", {}, 1, 1 << 20));
  YMIR_TRY_ASSIGN(model.num_token_types, size_field(config, "type_vocab_size", 2, 1, 1024));
  YMIR_TRY_ASSIGN(model.pad_token,
                  size_field(config, "pad_token_id", 0, 0, model.vocabulary_size - 1));
  YMIR_TRY_ASSIGN(model.layer_norm_epsilon, real_field(config, "layer_norm_eps", 1e-12, 0, 1));
  YMIR_TRY_ASSIGN(model.hidden_dropout, real_field(config, "hidden_dropout_prob", 0.1, 0, 1));
  YMIR_TRY_ASSIGN(model.attention_dropout,
                  real_field(config, "attention_probs_dropout_prob", 0.1, 0, 1));
  YMIR_TRY_ASSIGN(model.classifier_dropout,
                  real_field(config, "classifier_dropout", model.hidden_dropout, 0, 1));
  if (model.hidden_size % model.num_heads != 0)
    return refused(fmt::format("hidden_size {} is no multiple of num_attention_heads {}",
                               model.hidden_size, model.num_heads));
  YMIR_TRY_ASSIGN(model.labels, labels_of(config));
  return Ok{};
}

// Names of the shards that the index lists, and the tensors that each must hold.
using ShardIndex = std::map<std::string, std::set<std::string, std::less<>>>;

Result<ShardIndex> parse_index(std::string_view text) {
  YMIR_TRY_ASSIGN(const Json root, parse_json(text, {.max_bytes = kMaxIndex, .max_depth = 8}));
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object())
    return refused("has no weight_map");
  ShardIndex index;
  for (const auto& [tensor, file] : root["weight_map"].items()) {
    if (!file.is_string() || file.get_ref<const std::string&>().find('/') != std::string::npos ||
        !file.get_ref<const std::string&>().ends_with(".safetensors"))
      return refused(fmt::format("tensor {} lies in no .safetensors file of this folder", tensor));
    index[file.get<std::string>()].insert(tensor);
  }
  if (index.empty()) return refused("lists no tensor");
  return index;
}

// The shards of a folder; a single file is one shard that may hold anything (an empty set).
Result<ShardIndex> find_weights(const std::string& folder) {
  if (exists(folder + "/model.safetensors")) return ShardIndex{{"model.safetensors", {}}};
  const std::string path = folder + "/model.safetensors.index.json";
  if (const auto text = read_file(path, kMaxIndex)) {
    auto index = parse_index(*text);
    if (!index) return annotate(std::move(index).error(), path);
    return index;
  } else if (text.error().code != ErrorCode::kNotFound) {
    return text.error();
  }
  constexpr std::array<const char*, 3> kPickles = {"pytorch_model.bin", "model.bin",
                                                   "pytorch_model.bin.index.json"};
  for (const char* pickle : kPickles)
    if (exists(folder + "/" + pickle))
      return refused(fmt::format(
          "{0}/{1} is a pickle and is never loaded; convert it with: python3 -c \"from "
          "transformers import AutoModel as M; M.from_pretrained('{0}').save_pretrained('{0}')\"",
          folder, pickle));
  return Error{ErrorCode::kNotFound, folder + ": no model.safetensors"};
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view config_json) {
  YMIR_TRY_ASSIGN(const Json config,
                  parse_json(config_json, {.max_bytes = kMaxConfig, .max_depth = 16}));
  if (!config.is_object()) return refused("not an object");
  ModelConfig model;
  const Json type = config.value("model_type", Json());
  if (type != "bert")
    return refused(
        fmt::format("architecture {} is not supported (known: \"bert\")", canonical(type)));
  model.family = "bert";
  YMIR_TRY(read_bert(config, model));
  return model;
}

Result<> check_vocabulary(const ModelConfig& config, const Tokenizer& tokenizer) {
  if (tokenizer.vocabulary_size() <= config.vocabulary_size) return Ok{};
  return refused(fmt::format("the tokenizer gives ids up to {}, the model knows {} tokens",
                             tokenizer.vocabulary_size() - 1, config.vocabulary_size));
}

Result<ModelFiles> read_model_files(const std::string& folder, const Tokenizer& tokenizer,
                                    const std::string& cache) {
  ModelFiles model{.folder = folder};
  const std::string config_path = folder + "/config.json";
  const auto text = read_file(config_path, kMaxConfig);
  if (!text && text.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, "no config.json in " + folder};
  if (!text) return text.error();
  auto config = parse_model_config(*text);
  if (!config) return annotate(std::move(config).error(), config_path);
  model.config = *std::move(config);
  if (auto fits = check_vocabulary(model.config, tokenizer); !fits)
    return annotate(std::move(fits).error(), folder);
  YMIR_TRY_ASSIGN(const ShardIndex index, find_weights(folder));
  std::string identity = sha256(*text) + tokenizer.key();
  for (const auto& [name, tensors] : index) {
    model.weights.push_back(folder + "/" + name);
    YMIR_TRY_ASSIGN(const std::string hash, remembered_sha256(model.weights.back(), cache));
    identity += hash;
  }
  model.key = sha256(identity);
  return model;
}

Result<ModelWeights> ModelWeights::open(const std::string& folder) {
  YMIR_TRY_ASSIGN(const ShardIndex index, find_weights(folder));
  ModelWeights weights;
  for (const auto& [name, expected] : index) {
    const std::string path = folder + "/" + name;
    YMIR_TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
    for (const auto& [tensor, view] : file.tensors()) {
      if (!expected.empty() && !expected.contains(tensor))
        return refused(fmt::format("{}: holds tensor {}, the index does not say so", path, tensor));
      if (!weights.tensors_.emplace(tensor, view).second)
        return refused(fmt::format("{}: tensor {} stands in another shard too", path, tensor));
    }
    for (const std::string& tensor : expected)
      if (file.find(tensor) == nullptr)
        return refused(fmt::format("{}: lacks tensor {}, which the index names", path, tensor));
    weights.files_.push_back(std::move(file));
    weights.paths_.push_back(path);
  }
  return weights;
}

}  // namespace ymir
