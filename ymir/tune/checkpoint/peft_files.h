// An adapter folder as PEFT writes and reads it, without torch: adapter_config.json,
// adapter_model.safetensors, README.md (the card) and ymir_adapter.json (what PEFT has no place
// for). LoRA (rank-stabilised, with patterns, with magnitudes) and prefix tuning are PEFT's own;
// bottleneck, bitfit, top_k and full have no type there and stand under their own names.
// Tensor names as PEFT's, the adapter name removed: `lora_name`, `saved_name`.
//
// Reading refuses by name every field of the configuration that would change the result and is not
// built. Tensors come as f32, bit for bit where the file has f32. Any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/checkpoint/safetensors.h"

namespace ymir {

// adapter_config.json, as far as it may vary here.
struct PeftConfig {
  std::string kind = "lora";  // peft_type: lora prefix; ours: bottleneck bitfit top_k full
  std::string base_model{};   // base_model_name_or_path
  int rank = 8;               // r
  double alpha = 16;          // lora_alpha: the scale is alpha / rank (rslora: alpha / sqrt(rank))
  double dropout = 0;         // lora_dropout
  bool rank_stabilised = false;               // use_rslora
  bool magnitude = false;                     // use_dora
  std::map<std::string, int> rank_pattern{};  // by end of a module's name
  std::map<std::string, double> alpha_pattern{};
  std::vector<std::string> targets{};          // target_modules; a text (regex) is one entry
  std::vector<std::string> modules_to_save{};  // trained whole, e.g. "classifier"
  std::string task_type = "SEQ_CLS";           // SEQ_CLS, CAUSAL_LM; empty = null
  int virtual_tokens = 0, token_dim = 0, num_heads = 0, num_layers = 0;  // prefix
  int width = 0, layers = 0;                                             // bottleneck, top_k
  double scale() const;                                                  // without patterns
  int rank_of(std::string_view module) const;
  Result<> validate() const;
};

// ymir_adapter.json: what a reader of the adapter needs beside PEFT's files.
struct AdapterNotes {
  std::string task_kind{};            // classify, multi_label, regress, lm
  std::vector<std::string> labels{};  // in the order of the head's rows
  int max_length = 0;                 // tokens a row may have
  std::string prompt_template{};      // lm: of the conversations; empty: their format's usual one
  std::string backbone{};             // key of weights and tokenizer it was trained on
  std::string data_hash{};
  std::string numerics{};                        // numerics key
  std::map<std::string, std::string> lineage{};  // job, mode, partner, source's sha256, ...
  std::map<std::string, double> metrics{};       // measured on the validation set
};

struct Adapter {
  PeftConfig config{};
  AdapterNotes notes{};                   // empty for an adapter that was not made here
  TensorMap tensors{};                    // all f32
  std::string sha256{};                   // of adapter_model.safetensors
  std::shared_ptr<const void> storage{};  // keeps the tensors' bytes
};

// "base_model.model.<module>.lora_A.weight"; `which` is 'A' or 'B'.
std::string lora_name(std::string_view module, char which);
// "base_model.model.<module>.<parameter>": a module that is saved whole.
std::string saved_name(std::string_view module, std::string_view parameter);

// Replaces the folder as one (written beside it, synced, renamed); durable when it returns.
Result<> write_adapter(const std::string& folder, const PeftConfig& config,
                       const TensorMap& tensors, const AdapterNotes& notes);

// Refuses what is said above, a LoRA matrix without its mate or of another rank, tensors that
// belong to no module that is saved, and files that differ from the hashes in ymir_adapter.json.
Result<Adapter> read_adapter(const std::string& folder);

std::string peft_config_text(const PeftConfig& config);  // adapter_config.json
Result<PeftConfig> parse_peft_config(std::string_view json);

}  // namespace ymir
