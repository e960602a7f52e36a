#include "ymir/tune/checkpoint/peft_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/leftovers.h"
#include "ymir/base/text.h"
#include "ymir/core/job.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::size_t kMaxConfig = 4u << 20;
constexpr int kMaxRank = 4096;
constexpr int kMaxTokens = 1 << 20;  // of a row
constexpr double kMaxAlpha = 1e6;
constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kTensorFile = "adapter_model.safetensors";
constexpr const char* kCardFile = "README.md";
constexpr const char* kNotesFile = "ymir_adapter.json";

// Fields that only say how an adapter began, how it is named or how it was loaded: whatever they
// hold, the tensors stand.
constexpr std::array<std::string_view, 19> kHarmless = {"auto_mapping",
                                                        "base_model_name_or_path",
                                                        "corda_config",
                                                        "ensure_weight_tying",
                                                        "eva_config",
                                                        "exclude_modules",
                                                        "inference_mode",
                                                        "layers_pattern",
                                                        "layers_to_transform",
                                                        "loftq_config",
                                                        "lora_ga_config",
                                                        "megatron_config",
                                                        "megatron_core",
                                                        "peft_type",
                                                        "peft_version",
                                                        "qalora_group_size",
                                                        "revision",
                                                        "runtime_config",
                                                        "task_type"};
constexpr std::array<std::string_view, 9> kRead = {
    "r",        "lora_alpha",   "lora_dropout",  "use_rslora",     "target_modules",
    "use_dora", "rank_pattern", "alpha_pattern", "modules_to_save"};
// Kinds and the peft_type they are written as.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kKinds = {
    {{"lora", "LORA"},
     {"prefix", "PREFIX_TUNING"},
     {"bottleneck", "YMIR_BOTTLENECK"},
     {"bitfit", "YMIR_BITFIT"},
     {"top_k", "YMIR_TOP_K"},
     {"full", "YMIR_FULL"}}};

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// The value that leaves a switch of the configuration off.
bool is_off(const std::string& key, const Json& value) {
  if (key == "bias") return value == "none";
  // The first values of A and B only; the other ways to begin (pissa, olora, corda, ...) change the
  // backbone's weights too.
  if (key == "init_lora_weights" &&
      (value.is_boolean() || value == "gaussian" || value == "eva" || value == "orthogonal"))
    return true;
  return value.is_null() || value == false || value == "" ||
         ((value.is_object() || value.is_array()) && value.empty());
}

Result<std::vector<std::string>> text_list(const Json& config, const char* key) {
  std::vector<std::string> texts;
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return texts;
  if (!found->is_array())
    return refused(
        fmt::format("{} {} is not supported (known: a list of names)", key, canonical(*found)));
  for (const Json& item : *found) {
    if (!item.is_string()) return refused(fmt::format("{} holds something that is no name", key));
    texts.push_back(item.get<std::string>());
  }
  std::ranges::sort(texts);
  return texts;
}

Result<double> real(const Json& config, const char* key, double fallback) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return fallback;
  if (!found->is_number() || !std::isfinite(found->get<double>()))
    return refused(fmt::format("{} {} is not a number", key, canonical(*found)));
  return found->get<double>();
}

// lora_alpha and dropout print as PEFT's do: 16, not 16.0.
Json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

// Whether the tensor lies in a module of that name (any depth), as PEFT matches modules_to_save.
bool belongs_to(std::string_view path, const std::string& module) {
  return path.starts_with(module + ".") || path.find("." + module + ".") != path.npos;
}

// Sizes that only the configuration tells must be those of the tensors: room is made by them.
Result<> check_prompts(const PeftConfig& config, const TensorMap& tensors) {
  const auto prompts = tensors.find("prompt_embeddings");
  if (prompts == tensors.end()) return refused("holds no prompt_embeddings");
  const Shape wanted{config.virtual_tokens, std::int64_t{2} * config.num_layers * config.token_dim};
  if (prompts->second.shape != wanted)
    return refused(fmt::format("prompt_embeddings is {}, the configuration says {}",
                               shape_text(prompts->second.shape), shape_text(wanted)));
  return Ok{};
}
Result<> check_bottlenecks(const PeftConfig& config, const TensorMap& tensors) {
  bool any = false;
  for (const auto& [name, view] : tensors) {
    if (!name.ends_with(".adapter.down.weight")) continue;
    any = true;
    if (view.shape.empty() || view.shape[0] != config.width)
      return refused(fmt::format("tensor {} is {}, the width is {}", name, shape_text(view.shape),
                                 config.width));
  }
  return any ? Result<>(Ok{}) : refused("holds no bottleneck");
}

// A and B in pairs, of the configured rank; everything else in a module that is saved.
Result<> check_tensors(const PeftConfig& config, const TensorMap& tensors) {
  if (config.kind == "prefix") return check_prompts(config, tensors);
  if (config.kind == "bottleneck") return check_bottlenecks(config, tensors);
  if (config.kind != "lora") return Ok{};  // the model says what must be there
  std::size_t num_lora = 0;
  for (const auto& [name, view] : tensors) {
    if (!name.starts_with(kPrefix))
      return refused(fmt::format("tensor {} does not begin with {}", name, kPrefix));
    const bool a = name.ends_with(".lora_A.weight"), b = name.ends_with(".lora_B.weight");
    if (!a && !b) {
      if (config.magnitude && name.ends_with(".lora_magnitude_vector")) continue;
      if (name.find("lora_") != name.npos)
        return refused(fmt::format("tensor {} is of a kind that is not supported", name));
      const std::string_view path = std::string_view(name).substr(kPrefix.size());
      if (std::ranges::none_of(config.modules_to_save,
                               [&](const auto& module) { return belongs_to(path, module); }))
        return refused(fmt::format("tensor {} lies in no module of modules_to_save", name));
      continue;
    }
    ++num_lora;
    std::string mate = name;
    mate[name.size() - std::string_view("A.weight").size()] = a ? 'B' : 'A';
    if (!tensors.contains(mate)) return refused(fmt::format("tensor {} has no {}", name, mate));
    const std::string_view module = std::string_view(name).substr(
        kPrefix.size(), name.size() - kPrefix.size() - std::string_view(".lora_A.weight").size());
    if (view.shape.size() != 2 || view.shape[a ? 0 : 1] != config.rank_of(module))
      return refused(fmt::format("tensor {} is {}, the rank is {}", name, shape_text(view.shape),
                                 config.rank_of(module)));
  }
  if (num_lora == 0) return refused("holds no LoRA matrix");
  return Ok{};
}

std::string notes_text(const AdapterNotes& notes,
                       const std::map<std::string, std::string>& hashes) {
  Json labels = Json::object();
  for (std::size_t i = 0; i < notes.labels.size(); ++i) labels[std::to_string(i)] = notes.labels[i];
  const Json json = {{"version", 1},
                     {"task_kind", notes.task_kind},
                     {"labels", notes.labels},
                     {"id2label", labels},
                     {"max_length", notes.max_length},
                     {"prompt_template", notes.prompt_template},
                     {"backbone", notes.backbone},
                     {"data_hash", notes.data_hash},
                     {"numerics", notes.numerics},
                     {"lineage", notes.lineage},
                     {"metrics", notes.metrics},
                     {"sha256", hashes}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<AdapterNotes> parse_notes(std::string_view text,
                                 std::map<std::string, std::string>& hashes) {
  YMIR_TRY_ASSIGN(const Json json, parse_json(text, {.max_bytes = kMaxConfig, .max_depth = 8}));
  if (!json.is_object()) return refused("not an object");
  AdapterNotes notes;
  std::int64_t max_length = 0;
  const char* key = "version";
  const auto read = [&](const char* name, auto& to) { json.at(key = name).get_to(to); };
  try {
    if (json.at("version") != 1) return refused("has another version");
    read("task_kind", notes.task_kind);
    read("labels", notes.labels);
    read("max_length", max_length);
    if (json.contains("prompt_template"))  // older files lack it
      read("prompt_template", notes.prompt_template);
    read("backbone", notes.backbone);
    read("data_hash", notes.data_hash);
    read("numerics", notes.numerics);
    read("lineage", notes.lineage);
    read("metrics", notes.metrics);
    read("sha256", hashes);
  } catch (const Json::exception&) {
    return refused(fmt::format("{} is missing, or of another type than it has to be", key));
  }
  constexpr std::array kTasks = {TaskKind::kClassify, TaskKind::kMultiLabel, TaskKind::kRegress,
                                 TaskKind::kLanguageModel};
  if (!notes.task_kind.empty() && std::ranges::find(kTasks, notes.task_kind, [](TaskKind kind) {
                                    return to_string(kind);
                                  }) == kTasks.end())
    return refused(fmt::format("task_kind \"{}\" is not one of classify, multi_label, regress, lm",
                               notes.task_kind));
  if (max_length < 0 || max_length > kMaxTokens)
    return refused(fmt::format("max_length {} is not in 0..{}", max_length, kMaxTokens));
  notes.max_length = static_cast<int>(max_length);
  return notes;
}

// The card that a hub shows: YAML front matter, then what was trained on what.
std::string card_text(const PeftConfig& config, const AdapterNotes& notes) {
  std::string text =
      fmt::format("---\nlibrary_name: peft\nbase_model: {}\ntags:\n- {}\n- {}\n---\n\n",
                  Json(config.base_model).dump(-1, ' ', false, Json::error_handler_t::replace),
                  config.kind, notes.task_kind.empty() ? "adapter" : notes.task_kind);
  if (config.kind == "lora") {
    text += fmt::format("LoRA adapter, rank {}, alpha {:g}, on {}.\n\n", config.rank, config.alpha,
                        join(config.targets, ", "));
  } else {
    text += fmt::format("Trained parameters of kind {}.\n\n", config.kind);
  }
  if (!notes.labels.empty()) text += "Labels: " + join(notes.labels, ", ") + ".\n\n";
  text += "| | |\n|---|---|\n";
  for (const auto& [name, value] : notes.metrics)
    text += fmt::format("| {} (validation) | {:.4f} |\n", name, value);
  for (const auto& [name, value] : notes.lineage) text += fmt::format("| {} | {} |\n", name, value);
  text += fmt::format("| max_length | {} |\n| data | {} |\n| numerics | {} |\n", notes.max_length,
                      notes.data_hash, notes.numerics);
  return text;
}

// Every tensor as f32: in place where it is, else in `converted`.
struct Storage {
  SafetensorsFile file;
  std::vector<std::vector<float>> converted{};
};

Result<TensorMap> as_f32(Storage& storage) {
  TensorMap tensors;
  for (const auto& [name, view] : storage.file.tensors()) {
    if (view.dtype == DType::kF32 && view.aligned()) {
      tensors.emplace(name, view);
      continue;
    }
    auto values = to_f32(view);
    if (!values) return annotate(std::move(values).error(), "tensor " + name);
    storage.converted.push_back(*std::move(values));
    tensors.emplace(name, view_of(storage.converted.back(), view.shape));
  }
  return tensors;
}

// All f32. What a training that diverged left is of no use to anyone.
Result<> check_finite(const TensorMap& tensors) {
  for (const auto& [name, view] : tensors) {
    const std::span values(reinterpret_cast<const float*>(view.bytes.data()), view.count());
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      return Error{ErrorCode::kCorruption,
                   fmt::format("tensor {} holds NaN or infinity: its training diverged", name)};
  }
  return Ok{};
}

}  // namespace

double PeftConfig::scale() const {
  return alpha / (rank_stabilised ? std::sqrt(static_cast<double>(rank)) : rank);
}

int PeftConfig::rank_of(std::string_view module) const {
  for (const auto& [pattern, value] : rank_pattern)
    if (module == pattern || module.ends_with("." + pattern)) return value;
  return rank;
}

Result<> PeftConfig::validate() const {
  if (task_type != "SEQ_CLS" && task_type != "CAUSAL_LM" && !task_type.empty())
    return refused(fmt::format(
        "task_type \"{}\" is not supported (known: SEQ_CLS, CAUSAL_LM, null)", task_type));
  if (kind == "prefix" && (virtual_tokens < 1 || token_dim < 1 || num_heads < 1 || num_layers < 1))
    return refused(
        "num_virtual_tokens, token_dim, num_attention_heads and num_layers must be >= 1");
  if (kind != "lora") return Ok{};
  if (rank < 1 || rank > kMaxRank)
    return refused(fmt::format("r {} is not in 1..{}", rank, kMaxRank));
  const auto usable = [](double value) { return std::abs(value) <= kMaxAlpha; };  // NaN is not
  if (!usable(alpha)) return refused(fmt::format("lora_alpha {} is beyond {:g}", alpha, kMaxAlpha));
  for (const auto& [pattern, value] : alpha_pattern)
    if (!usable(value))
      return refused(fmt::format("alpha_pattern {} {} is beyond {:g}", pattern, value, kMaxAlpha));
  if (!(dropout >= 0 && dropout < 1))
    return refused(fmt::format("lora_dropout {} is not in [0, 1)", dropout));
  if (targets.empty()) return refused("target_modules names no module");
  return Ok{};
}

std::string lora_name(std::string_view module, char which) {
  return fmt::format("{}{}.lora_{}.weight", kPrefix, module, which);
}

std::string saved_name(std::string_view module, std::string_view parameter) {
  return fmt::format("{}{}.{}", kPrefix, module, parameter);
}

namespace {

// Prefix tuning, and the kinds that PEFT does not have.
std::string other_config_text(const PeftConfig& config) {
  Json json = {{"base_model_name_or_path", config.base_model},
               {"inference_mode", true},
               {"task_type", config.task_type.empty() ? Json(nullptr) : Json(config.task_type)}};
  for (const auto& [kind, type] : kKinds)
    if (kind == config.kind) json["peft_type"] = type;
  json["modules_to_save"] =
      config.modules_to_save.empty() ? Json(nullptr) : Json(config.modules_to_save);
  if (config.kind == "prefix") {
    json["encoder_hidden_size"] = config.token_dim;
    json["num_attention_heads"] = config.num_heads;
    json["num_layers"] = config.num_layers;
    json["num_transformer_submodules"] = 1;
    json["num_virtual_tokens"] = config.virtual_tokens;
    json["prefix_projection"] = false;
    json["token_dim"] = config.token_dim;
  }
  if (config.kind == "bottleneck") json["width"] = config.width;
  if (config.kind == "top_k") json["layers"] = config.layers;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<int> whole(const Json& json, const char* key, int fallback) {
  YMIR_TRY_ASSIGN(const double value, real(json, key, fallback));
  if (value != std::floor(value) || value < 0 || value > 1e9)
    return refused(fmt::format("{} {:g} is not a size", key, value));
  return static_cast<int>(value);
}

Result<> read_other(const Json& json, PeftConfig& config) {
  if (config.kind == "prefix") {
    if (const Json projection = json.value("prefix_projection", Json(false)); projection == true)
      return refused("prefix_projection true is not supported");
    YMIR_TRY_ASSIGN(config.virtual_tokens, whole(json, "num_virtual_tokens", 0));
    YMIR_TRY_ASSIGN(config.token_dim, whole(json, "token_dim", 0));
    YMIR_TRY_ASSIGN(config.num_heads, whole(json, "num_attention_heads", 0));
    YMIR_TRY_ASSIGN(config.num_layers, whole(json, "num_layers", 0));
  }
  YMIR_TRY_ASSIGN(config.width, whole(json, "width", 0));
  YMIR_TRY_ASSIGN(config.layers, whole(json, "layers", 0));
  return Ok{};
}

// Patterns are ends of module names here; what reads as an expression is refused.
Result<> plain_patterns(const Json& json, const char* key) {
  for (const auto& [pattern, value] : json.items())
    if (pattern.find_first_of("^$*+?()[]{}|\\") != pattern.npos || !value.is_number())
      return refused(
          fmt::format("{} \"{}\" is not supported (known: ends of module names)", key, pattern));
  return Ok{};
}

Result<> read_lora(const Json& json, PeftConfig& config) {
  for (const auto& [key, value] : json.items()) {
    const bool known = std::ranges::find(kHarmless, key) != kHarmless.end() ||
                       std::ranges::find(kRead, key) != kRead.end();
    if (!known && !is_off(key, value))
      return refused(fmt::format("{} {} is not supported", key, canonical(value)));
  }
  YMIR_TRY_ASSIGN(const double rank, real(json, "r", 8));
  if (rank != std::floor(rank) || rank < 1 || rank > kMaxRank)
    return refused(fmt::format("r {} is not in 1..{}", rank, kMaxRank));
  config.rank = static_cast<int>(rank);
  YMIR_TRY_ASSIGN(config.alpha, real(json, "lora_alpha", 8));
  YMIR_TRY_ASSIGN(config.dropout, real(json, "lora_dropout", 0));
  for (const auto& [key, flag] : {std::pair{"use_rslora", &config.rank_stabilised},
                                  std::pair{"use_dora", &config.magnitude}}) {
    const Json value = json.value(key, Json(false));
    if (!value.is_boolean()) return refused(fmt::format("{} is not true or false", key));
    *flag = value.get<bool>();
  }
  const Json ranks = json.value("rank_pattern", Json::object());
  const Json alphas = json.value("alpha_pattern", Json::object());
  if (!ranks.is_null() && ranks.is_object()) {
    YMIR_TRY(plain_patterns(ranks, "rank_pattern"));
    for (const auto& [pattern, value] : ranks.items()) {
      YMIR_TRY_ASSIGN(const int r, whole(ranks, pattern.c_str(), 0));
      if (r < 1 || r > kMaxRank)
        return refused(fmt::format("rank_pattern {} is not in 1..{}", r, kMaxRank));
      config.rank_pattern[pattern] = r;
    }
  }
  if (!alphas.is_null() && alphas.is_object()) {
    YMIR_TRY(plain_patterns(alphas, "alpha_pattern"));
    for (const auto& [pattern, value] : alphas.items())
      config.alpha_pattern[pattern] = value.get<double>();
  }
  const Json targets = json.value("target_modules", Json());
  if (targets.is_string()) {
    config.targets = {targets.get<std::string>()};
  } else {
    YMIR_TRY_ASSIGN(config.targets, text_list(json, "target_modules"));
  }
  return Ok{};
}

}  // namespace

std::string peft_config_text(const PeftConfig& config) {
  const auto list = [](const std::vector<std::string>& texts) {
    return texts.empty() ? Json(nullptr) : Json(texts);
  };
  if (config.kind != "lora") return other_config_text(config);
  Json alphas = Json::object();
  for (const auto& [pattern, value] : config.alpha_pattern) alphas[pattern] = number(value);
  const Json json = {
      {"alpha_pattern", alphas},
      {"auto_mapping", nullptr},
      {"base_model_name_or_path", config.base_model},
      {"bias", "none"},
      {"exclude_modules", nullptr},
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"layers_pattern", nullptr},
      {"layers_to_transform", nullptr},
      {"lora_alpha", number(config.alpha)},
      {"lora_bias", false},
      {"lora_dropout", config.dropout},
      {"modules_to_save", list(config.modules_to_save)},
      {"peft_type", "LORA"},
      {"r", config.rank},
      {"rank_pattern", Json(config.rank_pattern)},
      {"revision", nullptr},
      {"target_modules", list(config.targets)},
      {"task_type", config.task_type.empty() ? Json(nullptr) : Json(config.task_type)},
      {"use_dora", config.magnitude},
      {"use_rslora", config.rank_stabilised}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<PeftConfig> parse_peft_config(std::string_view text) {
  YMIR_TRY_ASSIGN(const Json json, parse_json(text, {.max_bytes = kMaxConfig, .max_depth = 16}));
  if (!json.is_object()) return refused("not an object");
  const Json type = json.value("peft_type", Json());
  PeftConfig config;
  const auto kind = std::ranges::find_if(kKinds, [&](const auto& k) { return type == k.second; });
  if (kind == kKinds.end())
    return refused(fmt::format("peft_type {} is not supported (known: \"LORA\", \"PREFIX_TUNING\")",
                               canonical(type)));
  config.kind = kind->first;
  if (const Json base = json.value("base_model_name_or_path", Json()); base.is_string())
    config.base_model = base.get<std::string>();
  if (config.kind == "lora") {
    YMIR_TRY(read_lora(json, config));
  } else {
    YMIR_TRY(read_other(json, config));
  }
  YMIR_TRY_ASSIGN(config.modules_to_save, text_list(json, "modules_to_save"));
  const Json task = json.value("task_type", Json());
  if (!task.is_null() && !task.is_string()) return refused("task_type is not a text");
  config.task_type = task.is_string() ? task.get<std::string>() : "";
  // PEFT itself saves the heads of a sequence classifier under these names.
  if (config.task_type == "SEQ_CLS")
    for (const char* head : {"classifier", "score"})
      if (std::ranges::find(config.modules_to_save, head) == config.modules_to_save.end())
        config.modules_to_save.emplace_back(head);
  YMIR_TRY(config.validate());
  return config;
}

namespace {

// PEFT wraps a model with learnt prompts once less, so its head's names are shorter in the file.
constexpr std::string_view kPromptPrefix = "base_model.";

TensorMap names_in_file(const PeftConfig& config, const TensorMap& tensors) {
  if (config.kind != "prefix") return tensors;
  TensorMap renamed;
  for (const auto& [name, view] : tensors)
    renamed[name.starts_with(kPrefix) ? std::string(kPromptPrefix) + name.substr(kPrefix.size())
                                      : name] = view;
  return renamed;
}

// The other way; files that have the longer names are read too.
TensorMap names_in_memory(const PeftConfig& config, const TensorMap& tensors) {
  if (config.kind != "prefix") return tensors;
  TensorMap renamed;
  for (const auto& [name, view] : tensors)
    renamed[name.starts_with(kPromptPrefix) && !name.starts_with(kPrefix)
                ? std::string(kPrefix) + name.substr(kPromptPrefix.size())
                : name] = view;
  return renamed;
}

Result<> write_files(const std::string& fresh, const PeftConfig& config, const TensorMap& tensors,
                     const AdapterNotes& notes) {
  YMIR_TRY(make_folders(fresh));
  YMIR_TRY(write_file(fresh + "/" + kConfigFile, peft_config_text(config)));
  YMIR_TRY(write_safetensors(fresh + "/" + kTensorFile, names_in_file(config, tensors)));
  YMIR_TRY(write_file(fresh + "/" + kCardFile, card_text(config, notes)));
  std::map<std::string, std::string> hashes;
  for (const char* name : {kConfigFile, kTensorFile, kCardFile}) {
    YMIR_TRY_ASSIGN(hashes[name], sha256_file(fresh + "/" + name));
  }
  return write_file(fresh + "/" + kNotesFile, notes_text(notes, hashes));
}

}  // namespace

Result<> write_adapter(const std::string& folder, const PeftConfig& config,
                       const TensorMap& tensors, const AdapterNotes& notes) {
  YMIR_TRY(config.validate());
  YMIR_TRY(check_tensors(config, tensors));
  const std::string base = folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder;
  const fs::path place(base);
  remove_leftovers(place.has_parent_path() ? place.parent_path().string() : ".",
                   place.filename().string() + ".tmp");  // a user may keep other files here
  const std::string fresh = fmt::format("{}.tmp{}", base, ::getpid());
  std::error_code error;
  if (const auto written = write_files(fresh, config, tensors, notes); !written) {
    fs::remove_all(fresh, error);
    return written;
  }
  // A folder can't be renamed over another: the old one steps aside first.
  const std::string old = fmt::format("{}.old{}", base, ::getpid());
  fs::remove_all(old, error);
  if (fs::exists(base, error)) {
    fs::rename(base, old, error);
    if (error) return Error{ErrorCode::kUnavailable, base + ": " + error.message()};
  }
  const auto committed = commit_folder(fresh, base);
  if (!committed) {  // the old one comes back
    fs::remove_all(fresh, error);
    if (fs::exists(old, error)) fs::rename(old, base, error);
    return committed;
  }
  fs::remove_all(old, error);
  return Ok{};
}

Result<Adapter> read_adapter(const std::string& folder) {
  const std::string config_path = folder + "/" + kConfigFile;
  YMIR_TRY_ASSIGN(const std::string text, read_file(config_path, kMaxConfig));
  auto config = parse_peft_config(text);
  if (!config) return annotate(std::move(config).error(), config_path);
  Adapter adapter{.config = *std::move(config)};
  const std::string tensor_path = folder + "/" + kTensorFile;
  std::error_code ignored;
  if (!fs::exists(tensor_path, ignored) && fs::exists(folder + "/adapter_model.bin", ignored))
    return refused(folder +
                   "/adapter_model.bin is a pickle and is never loaded; save the adapter "
                   "again with PEFT's save_pretrained(safe_serialization=True)");
  YMIR_TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(tensor_path));
  auto storage = std::make_shared<Storage>(Storage{std::move(file)});
  auto tensors = as_f32(*storage);
  if (!tensors) return annotate(std::move(tensors).error(), tensor_path);
  if (auto fits = check_tensors(adapter.config, *tensors); !fits)
    return annotate(std::move(fits).error(), tensor_path);
  if (auto finite = check_finite(*tensors); !finite)
    return annotate(std::move(finite).error(), tensor_path);
  adapter.tensors = names_in_memory(adapter.config, *tensors);
  adapter.storage = std::move(storage);
  YMIR_TRY_ASSIGN(adapter.sha256, sha256_file(tensor_path));

  const std::string notes_path = folder + "/" + kNotesFile;
  const auto notes = read_file(notes_path, kMaxConfig);
  if (!notes && notes.error().code == ErrorCode::kNotFound) return adapter;
  if (!notes) return notes.error();
  std::map<std::string, std::string> hashes;
  auto parsed = parse_notes(*notes, hashes);
  if (!parsed) return annotate(std::move(parsed).error(), notes_path);
  if (hashes[kTensorFile] != adapter.sha256 || hashes[kConfigFile] != sha256(text))
    return Error{ErrorCode::kCorruption,
                 folder + ": the adapter's files differ from the hashes in " + kNotesFile};
  adapter.notes = *std::move(parsed);
  return adapter;
}

}  // namespace ymir
