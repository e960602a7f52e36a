// What a model folder holds, read without torch: configuration, weight files, identity.
//
// A folder has config.json, model.safetensors (or model.safetensors.index.json with its shards) and
// a tokenizer (images: none). Pickles are never loaded. Any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/checkpoint/safetensors.h"
#include "ymir/tune/data/tokenizer.h"
#include "ymir/tune/model_config.h"

namespace ymir {

struct ModelFiles {
  std::string folder{};
  ModelConfig config{};
  std::vector<std::string> weights{};  // paths, in the order of their names
  std::string key{};  // sha256 over config, weights and tokenizer: equal key = same backbone
};

// Reads the configuration and hashes the weights (remembered in `cache`, see file_hash.h); checks
// that the tokenizer's ids fit the model.
// `tokenizer` null: of a model of images, whose preprocessor_config.json counts instead.
Result<ModelFiles> read_model_files(const std::string& folder, const Tokenizer* tokenizer,
                                    const std::string& cache);

// The folder's tokenizer; null for a model of images.
Result<std::shared_ptr<const Tokenizer>> read_tokenizer(const std::string& folder);

// Whether the model knows every id that the tokenizer can give.
Result<> check_vocabulary(const ModelConfig& config, const Tokenizer& tokenizer);

// All tensors of a model folder. The views live as long as it does.
class ModelWeights {
 public:
  // Refuses a name that stands in two shards, and shards and index that differ.
  static Result<ModelWeights> open(const std::string& folder);
  const TensorMap& tensors() const { return tensors_; }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::vector<SafetensorsFile> files_;
  std::vector<std::string> paths_;
  TensorMap tensors_;
};

}  // namespace ymir
