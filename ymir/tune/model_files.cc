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

Result<> check_vocabulary(const ModelConfig& config, const Tokenizer& tokenizer) {
  if (tokenizer.vocabulary_size() <= config.vocabulary_size) return Ok{};
  return refused(fmt::format("the tokenizer gives ids up to {}, the model knows {} tokens",
                             tokenizer.vocabulary_size() - 1, config.vocabulary_size));
}

namespace {

struct ConfigFile {
  std::string text{};
  ModelConfig config{};
};

Result<ConfigFile> read_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  auto text = read_file(path, kMaxConfig);
  if (!text && text.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, "no config.json in " + folder};
  if (!text) return std::move(text).error();
  auto config = parse_model_config(*text);
  if (!config) return annotate(std::move(config).error(), path);
  return ConfigFile{*std::move(text), *std::move(config)};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> read_tokenizer(const std::string& folder) {
  YMIR_TRY_ASSIGN(const ConfigFile file, read_config(folder));
  if (file.config.is_image()) return std::shared_ptr<const Tokenizer>();
  YMIR_TRY_ASSIGN(Tokenizer tokenizer, Tokenizer::load(folder));
  return std::make_shared<const Tokenizer>(std::move(tokenizer));
}

Result<ModelFiles> read_model_files(const std::string& folder, const Tokenizer* tokenizer,
                                    const std::string& cache) {
  ModelFiles model{.folder = folder};
  YMIR_TRY_ASSIGN(ConfigFile file, read_config(folder));
  model.config = std::move(file.config);
  std::string identity = sha256(file.text);
  if (tokenizer != nullptr) {
    if (auto fits = check_vocabulary(model.config, *tokenizer); !fits)
      return annotate(std::move(fits).error(), folder);
    identity += tokenizer->key();
  } else if (const auto images = read_file(folder + "/preprocessor_config.json", kMaxConfig)) {
    identity += sha256(*images);
  }
  YMIR_TRY_ASSIGN(const ShardIndex index, find_weights(folder));
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
