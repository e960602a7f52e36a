#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/log.h"
#include "ymir/tune/trainer/export_torch.h"

namespace ymir {
namespace {

constexpr const char* kConfigFile = "/adapter_config.json";
constexpr const char* kTensorFile = "/adapter_model.safetensors";
constexpr const char* kFactsFile = "/ymir_adapter.json";

Json peft_config(const ExportRequest& request, const TaskSetup& setup) {
  const MethodSpec& method = request.spec.method;
  std::vector<std::string> saved = {"classifier"};
  if (setup.head.own_pooler) saved.push_back("pooler");
  std::vector<std::string> targets = method.targets;
  if (targets.empty()) targets = {"query", "value"};
  return {{"alpha_pattern", Json::object()},
          {"auto_mapping", nullptr},
          {"base_model_name_or_path", request.spec.model},
          {"bias", "none"},
          {"exclude_modules", nullptr},
          {"fan_in_fan_out", false},
          {"inference_mode", true},
          {"init_lora_weights", true},
          {"layers_pattern", nullptr},
          {"layers_to_transform", nullptr},
          {"lora_alpha", method.alpha},
          {"lora_bias", false},
          {"lora_dropout", method.dropout},
          {"modules_to_save", saved},
          {"peft_type", "LORA"},
          {"r", method.rank},
          {"rank_pattern", Json::object()},
          {"revision", nullptr},
          {"target_modules", targets},
          {"task_type", "SEQ_CLS"},
          {"use_dora", false},
          {"use_rslora", false}};
}

const Evaluation* best_of(const Progress& progress) {
  for (const Evaluation& evaluation : progress.evaluations)
    if (progress.best && evaluation.step == progress.best->step) return &evaluation;
  return nullptr;
}

Json facts_of(const ExportRequest& request, const TaskSetup& setup,
              const std::map<std::string, std::string>& hashes) {
  Json facts = {{"version", 1},
                {"kind", to_string(setup.kind)},
                {"outputs", setup.outputs},
                {"labels", request.labels},
                {"job", to_string(request.job)},
                {"name", request.spec.name},
                {"mode", to_string(request.mode)},
                {"partner", request.partner ? Json(to_string(request.partner)) : Json(nullptr)},
                {"data", request.data_key},
                {"numerics", request.numerics},
                {"sha256", hashes}};
  if (request.progress.lineage)
    facts["lineage"] = {{"source", to_string(request.progress.lineage->source)},
                        {"sha256", request.progress.lineage->hash},
                        {"strength", request.progress.lineage->strength}};
  if (const Evaluation* best = best_of(request.progress)) {
    facts["step"] = best->step;
    facts["metrics"] = best->metrics;
  }
  return facts;
}

std::string card_of(const ExportRequest& request) {
  std::string text = fmt::format(
      "---\nlibrary_name: peft\ntags: [lora, ymir]\n---\n# {}\n\nLoRA adapter (r={}, alpha={}) "
      "with its classification head, trained by Ymir.\n\n- data: `{}`\n- mode: {}{}\n- steps: {}\n",
      request.spec.name, request.spec.method.rank, request.spec.method.alpha, request.data_key,
      to_string(request.mode),
      request.partner ? fmt::format(", with {}", to_string(request.partner)) : "",
      request.progress.step);
  if (const Evaluation* best = best_of(request.progress)) {
    text += fmt::format("\nValidation at step {}:\n\n| metric | value |\n|---|---|\n", best->step);
    for (const auto& [name, value] : best->metrics)
      text += fmt::format("| {} | {:.4f} |\n", name, value);
  }
  return text;
}

// Fields of a PEFT configuration that would change the result and are not built: refused unless
// they have the value that means "not used".
Result<> check_config(const Json& config) {
  const auto text = [&](const char* key) {
    const auto found = config.find(key);
    return found == config.end() || !found->is_string() ? std::string() : found->get<std::string>();
  };
  if (text("peft_type") != "LORA")
    return Error{ErrorCode::kInvalidArgument, "peft_type is not LORA: " + text("peft_type")};
  if (const std::string bias = text("bias"); !bias.empty() && bias != "none")
    return Error{ErrorCode::kInvalidArgument, "adapter setting is not supported: bias " + bias};
  for (const char* key :
       {"use_dora", "lora_bias", "layer_replication", "target_parameters", "use_qalora",
        "trainable_token_indices", "alora_invocation_tokens", "fan_in_fan_out", "rank_pattern",
        "alpha_pattern", "exclude_modules", "layers_to_transform"}) {
    const auto found = config.find(key);
    const bool unused = found == config.end() || found->is_null() || *found == Json(false) ||
                        ((found->is_object() || found->is_array()) && found->empty());
    if (!unused)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("adapter setting is not supported: {}", key)};
  }
  return Ok{};
}

struct PeftFolder {
  MethodSpec method{};
  Json facts{};
  SafetensorsFile tensors;
};

Result<PeftFolder> read_folder(const std::string& folder) {
  YMIR_TRY_ASSIGN(const std::string text, read_file(folder + kConfigFile, 1 << 20));
  YMIR_TRY_ASSIGN(const Json config, parse_json(text));
  YMIR_TRY(check_config(config));
  YMIR_TRY_ASSIGN(SafetensorsFile tensors, SafetensorsFile::open(folder + kTensorFile));
  PeftFolder out{{}, Json::object(), std::move(tensors)};
  try {
    out.method.rank = config.at("r").get<int>();
    out.method.alpha = config.at("lora_alpha").get<double>();
    out.method.dropout = config.value("lora_dropout", 0.0);
    if (config.at("target_modules").is_array())
      out.method.targets = config.at("target_modules").get<std::vector<std::string>>();
    // With rank-stabilised LoRA the scale is alpha / sqrt(r).
    if (config.contains("use_rslora") && config["use_rslora"] == Json(true))
      out.method.alpha *= std::sqrt(static_cast<double>(out.method.rank));
    if (const auto facts = read_file(folder + kFactsFile, 1 << 20)) {
      YMIR_TRY_ASSIGN(out.facts, parse_json(*facts));
    }
  } catch (const Json::exception& e) {
    return Error{ErrorCode::kInvalidArgument, folder + kConfigFile + ": " + e.what()};
  }
  return out;
}

// One batch through both bindings: every bit must be the same.
Result<> compare_logits(const TaskSetup& setup, const ExportRequest& live,
                        const LoadedAdapter& loaded, const Encoder& encoder,
                        const EvaluationRows& check) {
  std::vector<std::uint32_t> rows(std::min<std::size_t>(16, check.lengths.size()));
  std::iota(rows.begin(), rows.end(), 0u);
  if (rows.empty()) return Ok{};
  const Batch batch = check.batch(rows);
  const at::Tensor a = logits_of(setup, live.adapter, live.head, encoder, batch.input);
  const at::Tensor b = logits_of(loaded.setup, loaded.adapter, loaded.head, encoder, batch.input);
  if (!at::equal(a, b))
    return Error{ErrorCode::kInternal, "the exported adapter gives other logits than the live one"};
  return Ok{};
}

}  // namespace

Result<ExportedAdapter> export_adapter(const ExportRequest& request, const TaskSetup& setup,
                                       const Encoder& encoder, const EvaluationRows& check) {
  TensorMap tensors;
  setup.adapter.layout.collect(request.adapter, "", tensors);
  setup.head.layout.collect(request.head, "", tensors);
  const std::string temporary = request.folder + ".tmp";
  std::error_code ignored;
  std::filesystem::remove_all(temporary, ignored);
  YMIR_TRY(make_folders(temporary));
  YMIR_TRY(write_safetensors(temporary + kTensorFile, tensors));
  YMIR_TRY_ASSIGN(const std::string hash, sha256_file(temporary + kTensorFile));
  if (const auto old = sha256_file(request.folder + kTensorFile);
      old && *old == hash && std::filesystem::exists(request.folder + kFactsFile, ignored)) {
    std::filesystem::remove_all(temporary, ignored);
    return ExportedAdapter{request.folder, hash};
  }
  const std::string config =
      peft_config(request, setup).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string card = card_of(request);
  const Json facts = facts_of(request, setup,
                              {{"adapter_model.safetensors", hash},
                               {"adapter_config.json", sha256(config)},
                               {"README.md", sha256(card)}});
  YMIR_TRY(write_file(temporary + kConfigFile, config));
  YMIR_TRY(write_file(temporary + "/README.md", card));
  YMIR_TRY(write_file(temporary + kFactsFile,
                      facts.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
  std::filesystem::remove_all(request.folder, ignored);
  YMIR_TRY(commit_folder(temporary, request.folder));
  YMIR_TRY_ASSIGN(const LoadedAdapter loaded, load_adapter(request.folder, encoder));
  YMIR_TRY(compare_logits(setup, request, loaded, encoder, check));
  return ExportedAdapter{request.folder, hash};
}

Result<at::Tensor> adapter_from_source(const LoraAdapter& adapter, const std::string& folder,
                                       const std::string& hash, double strength,
                                       std::uint64_t seed) {
  YMIR_TRY_ASSIGN(const PeftFolder source, read_folder(folder));
  YMIR_TRY_ASSIGN(const std::string found, sha256_file(folder + kTensorFile));
  if (!hash.empty() && found != hash)
    return Error{ErrorCode::kCorruption, "the source's adapter has another hash: " + folder};
  if (!(strength > 0 && strength <= 1))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("strength must be in (0, 1]: {}", strength)};
  return transferred_lora(adapter, source.tensors.tensors(), source.method.rank,
                          source.method.alpha / source.method.rank, strength, seed);
}

Result<LoadedAdapter> load_adapter(const std::string& folder, const Encoder& encoder) {
  YMIR_TRY_ASSIGN(const PeftFolder source, read_folder(folder));
  LoadedAdapter out;
  YMIR_TRY_ASSIGN(out.setup.adapter, make_lora(encoder.shape, source.method));
  const TensorView* classifier = source.tensors.find("base_model.model.classifier.weight");
  if (classifier == nullptr || classifier->shape.size() != 2)
    return Error{ErrorCode::kInvalidArgument, "the adapter has no classifier: " + folder};
  out.setup.outputs = static_cast<int>(classifier->shape[0]);
  out.setup.head = make_head(encoder, out.setup.outputs);
  out.setup.kind = source.facts.value("kind", std::string()) == to_string(TaskKind::kRegress) ||
                           out.setup.outputs == 1
                       ? TaskKind::kRegress
                       : TaskKind::kClassify;
  if (const auto labels = source.facts.find("labels");
      labels != source.facts.end() && labels->is_array())
    for (const Json& label : *labels)
      if (label.is_string()) out.labels.push_back(label.get<std::string>());
  if (out.labels.empty() && out.setup.kind == TaskKind::kClassify)
    for (int label = 0; label < out.setup.outputs; ++label)
      out.labels.push_back(std::to_string(label));
  YMIR_TRY_ASSIGN(out.adapter, out.setup.adapter.layout.restore(source.tensors.tensors(), ""));
  YMIR_TRY_ASSIGN(out.head, out.setup.head.layout.restore(source.tensors.tensors(), ""));
  return out;
}

}  // namespace ymir
