#include "ymir/tune/model/family.h"

#include <fmt/format.h>

#include "ymir/base/result.h"

namespace ymir {
namespace {

Family bert(std::string_view name, std::string_view prefix) {
  Family f;
  f.name = name;
  f.prefix = prefix;
  f.words = "embeddings.word_embeddings";
  f.positions = "embeddings.position_embeddings.weight";
  f.token_types = "embeddings.token_type_embeddings";
  f.embedding_norm = "embeddings.LayerNorm";
  f.layer = "encoder.layer.";
  f.sites = {"attention.self.query",
             "attention.self.key",
             "attention.self.value",
             "attention.output.dense",
             "intermediate.dense",
             "output.dense",
             ""};
  f.attention_norm = "attention.output.LayerNorm";
  f.ffn_norm = "output.LayerNorm";
  f.default_targets = {"query", "value"};
  f.head = HeadKind::kPooler;
  f.head_dense = "bert.pooler.dense";
  f.classifier = "classifier";
  f.ignored = {"cls.", "classifier.", "embeddings.position_ids"};
  return f;
}

Family roberta() {
  Family f = bert("roberta", "roberta.");
  f.head = HeadKind::kDenseTanh;
  f.head_dense = "classifier.dense";
  f.classifier = "classifier.out_proj";
  f.ignored = {"lm_head.", "classifier.", "embeddings.position_ids", "pooler."};
  return f;
}

Family distilbert() {
  Family f = bert("distilbert", "distilbert.");
  f.token_types = "";
  f.layer = "transformer.layer.";
  f.sites = {"attention.q_lin",
             "attention.k_lin",
             "attention.v_lin",
             "attention.out_lin",
             "ffn.lin1",
             "ffn.lin2",
             ""};
  f.attention_norm = "sa_layer_norm";
  f.ffn_norm = "output_layer_norm";
  f.default_targets = {"q_lin", "v_lin"};
  f.head = HeadKind::kDenseRelu;
  f.head_dense = "pre_classifier";
  f.ignored = {"vocab_transform.", "vocab_layer_norm.",       "vocab_projector.", "pre_classifier.",
               "classifier.",      "embeddings.position_ids", "qa_outputs."};
  return f;
}

Family llama() {
  Family f;
  f.name = "llama";
  f.prefix = "model.";
  f.words = "embed_tokens";
  f.layer = "layers.";
  f.sites = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
             "mlp.up_proj",      "mlp.down_proj",    "mlp.gate_proj"};
  f.attention_norm = "input_layernorm";
  f.ffn_norm = "post_attention_layernorm";
  f.final_norm = "norm";
  f.default_targets = {"q_proj", "v_proj"};
  f.head = HeadKind::kClassifier;
  f.classifier = "score";
  f.classifier_bias = false;
  f.ignored = {"score."};
  return f;
}

Family vit() {
  Family f = bert("vit", "vit.");
  f.words = f.token_types = f.embedding_norm = "";
  f.positions = "embeddings.position_embeddings";
  f.sites = {"attention.attention.query",
             "attention.attention.key",
             "attention.attention.value",
             "attention.output.dense",
             "intermediate.dense",
             "output.dense",
             ""};
  f.attention_norm = "layernorm_before";
  f.ffn_norm = "layernorm_after";
  f.final_norm = "layernorm";
  f.head = HeadKind::kClassifier;
  f.head_dense = "";
  f.ignored = {"classifier.", "pooler.", "embeddings.mask_token"};
  // Names that transformers >= 5 has in memory.
  f.renamed = {{"attention.q_proj", "attention.attention.query"},
               {"attention.k_proj", "attention.attention.key"},
               {"attention.v_proj", "attention.attention.value"},
               {"attention.o_proj", "attention.output.dense"},
               {"mlp.fc1", "intermediate.dense"},
               {"mlp.fc2", "output.dense"}};
  return f;
}

const std::array<Family, 5>& families() {
  static const std::array<Family, 5> table = {bert("bert", "bert."), roberta(), distilbert(),
                                              llama(), vit()};
  return table;
}

}  // namespace

std::string Family::module(int number, Site site) const {
  return fmt::format("{}{}.{}", layer, number, sites[static_cast<std::size_t>(site)]);
}

std::string Family::plain_name(std::string_view tensor) const {
  std::string plain(tensor);
  if (plain.starts_with("model." + std::string(prefix)) && prefix != "model.")
    plain = plain.substr(6);
  if (plain.starts_with(prefix)) plain = plain.substr(prefix.size());
  for (const auto& [old_end, new_end] : {std::pair{".gamma", ".weight"}, {".beta", ".bias"}})
    if (plain.ends_with(old_end))
      plain = plain.substr(0, plain.size() - std::string_view(old_end).size()) + new_end;
  if (!renamed.empty() && plain.starts_with("layers.")) plain = "encoder.layer" + plain.substr(6);
  for (const auto& [theirs, ours] : renamed) {
    const std::size_t at = plain.find(fmt::format(".{}.", theirs));
    if (at != plain.npos) plain.replace(at + 1, theirs.size(), ours);
  }
  return plain;
}

std::string Family::current_name(std::string_view given) const {
  std::string out(given);
  if (renamed.empty()) return out;
  if (const std::size_t at = out.find("encoder.layer."); at != out.npos)
    out.replace(at, std::string_view("encoder.layer.").size(), "layers.");
  for (const auto& [theirs, ours] : renamed) {
    // A target may be the last part alone: "query" means "q_proj".
    const std::string_view end = ours.substr(ours.find_last_of('.') + 1);
    if (out == end && end != "dense") return std::string(theirs.substr(theirs.find('.') + 1));
    const std::size_t at = out.find(ours);
    if (at != out.npos && (at == 0 || out[at - 1] == '.')) {
      out.replace(at, ours.size(), theirs);
      return out;
    }
  }
  return out;
}

std::string Family::plain_module(std::string_view module) const {
  const std::string plain = plain_name(std::string(module) + ".weight");
  std::string out = plain.substr(0, plain.size() - std::string_view(".weight").size());
  for (const auto& [theirs, ours] : renamed)
    if (out == theirs.substr(theirs.find('.') + 1) || out == theirs) return std::string(ours);
  return out;
}

bool Family::ignores(std::string_view plain) const {
  for (const std::string_view beginning : ignored)
    if (plain.starts_with(beginning)) return true;
  return plain.ends_with(".rotary_emb.inv_freq");
}

const Family& family_of(std::string_view name) {
  for (const Family& family : families())
    if (family.name == name) return family;
  YMIR_CHECK(false, "parse_model_config knows the family");
  return families().front();
}

}  // namespace ymir
