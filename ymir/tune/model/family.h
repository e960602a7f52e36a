// Family: how the files of a model family name its tensors and modules, and what its
// classification head looks like. A table of names; what the family computes is in ModelConfig.
//
// Modules stand below `prefix` ("bert.", "model."); a layer's below `prefix` + `layer`. Files may
// lack the prefix, and may say gamma and beta.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ymir {

// The linear maps of a block, where adapters sit.
enum class Site : std::uint8_t {
  kQuery,
  kKey,
  kValue,
  kAttentionOut,
  kFfnIn,
  kFfnOut,
  kFfnGate,  // of gated blocks only
};
inline constexpr std::size_t kNumSites = 7;
inline constexpr std::array<Site, kNumSites> kAllSites = {
    Site::kQuery, Site::kKey,    Site::kValue,  Site::kAttentionOut,
    Site::kFfnIn, Site::kFfnOut, Site::kFfnGate};

// What lies between the encoder's vectors and the classifier.
enum class HeadKind {
  kPooler,      // tanh(dense), from the file when it has one; then dropout (BERT)
  kDenseTanh,   // dropout, tanh(own dense), dropout (RoBERTa)
  kDenseRelu,   // relu(own dense), dropout (DistilBERT)
  kClassifier,  // the classifier alone (ViT; LLaMA: without bias)
};

struct Family {
  std::string_view name{};
  std::string_view prefix{};
  std::string_view words{}, positions{}, token_types{}, embedding_norm{};
  std::string_view layer{};                         // up to the layer's number: "encoder.layer."
  std::array<std::string_view, kNumSites> sites{};  // below the layer
  std::string_view attention_norm{}, ffn_norm{};    // below the layer
  std::string_view final_norm{};                    // of norm-first families
  std::vector<std::string_view> default_targets{};  // of LoRA
  HeadKind head = HeadKind::kClassifier;
  std::string_view head_dense{};  // with its prefix
  std::string_view classifier{};
  bool classifier_bias = true;
  std::vector<std::string_view> ignored{};  // beginnings of tensors that do not matter
  // Other names of the same modules, as {theirs, ours}, replaced where they stand between dots.
  std::vector<std::pair<std::string_view, std::string_view>> renamed{};

  bool has(Site site) const { return !sites[static_cast<std::size_t>(site)].empty(); }
  // "encoder.layer.3.attention.self.query": without the prefix.
  std::string module(int layer, Site site) const;
  // A file's tensor name in this table's words, without the prefix.
  std::string plain_name(std::string_view tensor) const;
  bool ignores(std::string_view plain) const;
  // Today's name, where transformers has renamed the family's modules since (`renamed`).
  std::string current_name(std::string_view name) const;
  // A module's name or the end of one in this table's words.
  std::string plain_module(std::string_view module) const;
};

// One of those that parse_model_config gives.
const Family& family_of(std::string_view name);

}  // namespace ymir
