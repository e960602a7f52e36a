#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <numeric>

#include "ymir/tune/checkpoint/peft_files.h"
#include "ymir/tune/model/plain_torch.h"
#include "ymir/tune/petl/targets.h"
#include "ymir/tune/trainer/export_torch.h"

namespace ymir {
namespace {

// As PEFT names modules that are saved whole: the top module of the classifier, and the dense layer
// before it where that is another.
std::vector<std::string> head_modules(const Family& family, const Head& head) {
  const auto top = [](std::string_view module) {
    return std::string(module.substr(0, module.find('.')));
  };
  std::vector<std::string> modules = {top(family.classifier)};
  if (!head.own_dense) return modules;
  const std::string dense = family.head == HeadKind::kPooler ? "pooler" : top(family.head_dense);
  if (dense != modules.front()) modules.push_back(dense);
  return modules;
}

PeftConfig config_of(const ExportRequest& request, const TaskSetup& setup,
                     const EncoderShape& shape) {
  const Family& family = family_of(shape.family);
  const MethodSpec& method = setup.adapter.method;
  PeftConfig config;
  config.kind = method.kind;
  config.base_model = request.spec.model;
  config.rank = method.rank;
  config.alpha = method.alpha;
  config.dropout = method.dropout;
  config.rank_stabilised = method.rank_stabilised;
  config.magnitude = method.magnitude;
  config.rank_pattern = method.rank_pattern;
  config.alpha_pattern = method.alpha_pattern;
  for (const std::string& target : target_modules(family, method))
    config.targets.push_back(family.current_name(target));
  config.virtual_tokens = method.length;
  config.num_layers = shape.layers;
  config.num_heads = shape.kv_heads;
  config.token_dim = static_cast<int>(shape.kv_width());
  config.width = method.width;
  config.layers = method.layers;
  const bool causal = setup.kind == TaskKind::kLanguageModel;
  config.task_type = causal ? "CAUSAL_LM" : shape.patch > 0 ? "" : "SEQ_CLS";
  if (!causal) config.modules_to_save = head_modules(family, setup.head);
  return config;
}

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::int64_t kMaxOutputs = 5000;  // of a head

// The backbone's tensors in the table's words, whichever release of transformers named them.
TensorMap with_plain_names(const Family& family, const TensorMap& tensors) {
  const std::string start = std::string(kPrefix) + std::string(family.prefix);
  TensorMap out;
  for (const auto& [name, view] : tensors)
    out.emplace(name.starts_with(start)
                    ? start + family.plain_name(std::string_view(name).substr(kPrefix.size()))
                    : name,
                view);
  return out;
}
TensorMap with_current_names(const Family& family, const TensorMap& tensors) {
  TensorMap out;
  for (const auto& [name, view] : tensors) out.emplace(family.current_name(name), view);
  return out;
}

AdapterNotes notes_of(const ExportRequest& request, const TaskSetup& setup) {
  AdapterNotes notes;
  notes.task_kind = to_string(setup.kind);
  notes.labels = request.labels;
  notes.max_length = request.max_length;
  notes.prompt_template = request.spec.data.prompt_template;
  notes.backbone = request.backbone;
  notes.data_hash = request.data_key;
  notes.numerics = request.numerics;
  notes.lineage = {{"job", to_string(request.job)},
                   {"name", request.spec.name},
                   {"mode", to_string(request.mode)}};
  if (request.partner) notes.lineage["partner"] = to_string(request.partner);
  const Progress& progress = request.progress;
  if (progress.lineage) {
    notes.lineage["source"] = to_string(progress.lineage->source);
    notes.lineage["source_sha256"] = progress.lineage->hash;
    notes.lineage["strength"] = fmt::format("{}", progress.lineage->strength);
  }
  for (const Evaluation& evaluation : progress.evaluations) {
    if (!progress.best || evaluation.step != progress.best->step) continue;
    notes.lineage["step"] = std::to_string(evaluation.step);
    notes.metrics = evaluation.metrics;
  }
  return notes;
}

// The method behind an adapter's files. LoRA's modules are those that have tensors: target_modules
// may be an expression, and others may be excluded.
MethodSpec method_of(const PeftConfig& config, const Family& family, const TensorMap& tensors) {
  MethodSpec method;
  method.kind = config.kind;
  method.rank = config.rank;
  method.alpha = config.alpha;
  method.dropout = config.dropout;
  method.rank_stabilised = config.rank_stabilised;
  method.magnitude = config.magnitude;
  if (config.magnitude) method.dropout = 0;  // only training would drop
  for (const auto& [pattern, value] : config.rank_pattern)
    method.rank_pattern[family.plain_module(pattern)] = value;
  for (const auto& [pattern, value] : config.alpha_pattern)
    method.alpha_pattern[family.plain_module(pattern)] = value;
  method.length = config.virtual_tokens;
  method.width = config.width;
  method.layers = config.layers;
  const std::string start = std::string(kPrefix) + std::string(family.prefix);
  constexpr std::string_view kEnd = ".lora_A.weight";
  for (const auto& [name, view] : tensors)
    if (name.starts_with(start) && name.ends_with(kEnd))
      method.targets.push_back(name.substr(start.size(), name.size() - start.size() - kEnd.size()));
  return method;
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
  const at::Tensor adapter = request.adapter.cpu(), head = request.head.cpu();
  setup.adapter.layout.collect(adapter, "", tensors);
  setup.head.layout.collect(head, "", tensors);
  const Family& family = family_of(encoder.shape.family);
  tensors = with_current_names(family, tensors);
  // A best that has not changed since it was written stays.
  if (const auto old = read_adapter(request.folder); old && old->tensors == tensors)
    return ExportedAdapter{request.folder, old->sha256};
  YMIR_TRY(write_adapter(request.folder, config_of(request, setup, encoder.shape), tensors,
                         notes_of(request, setup)));
  YMIR_TRY_ASSIGN(const LoadedAdapter loaded, load_adapter(request.folder, encoder));
  YMIR_TRY(compare_logits(setup, request, loaded, encoder, check));
  return ExportedAdapter{request.folder, loaded.hash};
}

Result<at::Tensor> adapter_from_source(const AdapterPlan& adapter, const Encoder& encoder,
                                       const std::string& folder, const std::string& hash,
                                       double strength, std::uint64_t seed) {
  YMIR_TRY_ASSIGN(const Adapter source, read_adapter(folder));
  if (!hash.empty() && source.sha256 != hash)
    return Error{ErrorCode::kCorruption, "the source's adapter has another hash: " + folder};
  if (!(strength > 0 && strength <= 1))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("strength must be in (0, 1]: {}", strength)};
  if (source.config.kind != adapter.method.kind)
    return Error{ErrorCode::kConflict, fmt::format("the source is of method {}, this job of {}",
                                                   source.config.kind, adapter.method.kind)};
  const TensorMap tensors = with_plain_names(family_of(encoder.shape.family), source.tensors);
  return transferred_adapter(adapter, encoder, {tensors, source.config.rank, source.config.scale()},
                             strength, seed);
}

namespace {

// Of classes that were not named, as transformers numbers them: 0, 1, ...
std::vector<std::string> class_names(std::vector<std::string> labels, int outputs) {
  bool named = false;
  for (std::size_t i = 0; i < labels.size(); ++i) named |= labels[i] != fmt::format("LABEL_{}", i);
  if (named) return labels;
  labels.clear();
  for (int label = 0; label < outputs; ++label) labels.push_back(std::to_string(label));
  return labels;
}

}  // namespace

Result<LoadedAdapter> load_own_head(const ModelFiles& model, const Encoder& encoder) {
  const Family& family = family_of(encoder.shape.family);
  YMIR_TRY_ASSIGN(const ModelWeights weights, ModelWeights::open(model.folder));
  LoadedAdapter out;
  out.backbone = model.key;
  out.max_length = model.config.trained_length;
  out.prompt_template = model.config.prompt_template;
  out.setup.adapter.layers = encoder.shape.layers;
  out.adapter = out.setup.adapter.layout.zeros();
  const auto classifier = weights.tensors().find(std::string(family.classifier) + ".weight");
  if (classifier == weights.tensors().end()) {
    if (!encoder.output.weight.defined())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} has no head of its own (no {}.weight): give --adapter",
                               model.folder, family.classifier)};
    out.setup.kind = TaskKind::kLanguageModel;
    out.setup.head = no_head();
    out.head = out.setup.head.layout.zeros();
    return out;
  }
  if (classifier->second.shape.size() != 2 || classifier->second.shape[0] > kMaxOutputs)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: {} is {}, no head of up to {} outputs", model.folder,
                             classifier->first, shape_text(classifier->second.shape), kMaxOutputs)};
  out.setup.outputs = static_cast<int>(classifier->second.shape[0]);
  out.setup.head = make_head(encoder, out.setup.outputs);
  std::list<std::vector<float>> storage;
  TensorMap tensors;
  for (const auto& [name, view] : weights.tensors()) {
    const bool of_head = name.starts_with(family.classifier) ||
                         (!family.head_dense.empty() && name.starts_with(family.head_dense));
    if (!of_head) continue;
    YMIR_TRY_ASSIGN(std::vector<float> values, to_f32(view));
    storage.push_back(std::move(values));
    tensors.emplace(std::string(kPrefix) + name, view_of(storage.back(), view.shape));
  }
  YMIR_TRY_ASSIGN(out.head, out.setup.head.layout.restore(tensors, ""));
  out.head = out.head.to(device_of(encoder));
  const std::string& problem = model.config.problem_type;
  out.setup.kind = problem == "multi_label_classification"             ? TaskKind::kMultiLabel
                   : out.setup.outputs == 1 || problem == "regression" ? TaskKind::kRegress
                                                                       : TaskKind::kClassify;
  if (out.setup.kind == TaskKind::kRegress) return out;
  out.labels = class_names(model.config.labels, out.setup.outputs);
  if (std::ssize(out.labels) != out.setup.outputs)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the head has {} outputs, config.json names {} labels",
                             model.folder, out.setup.outputs, out.labels.size())};
  return out;
}

Result<LoadedAdapter> load_adapter(const std::string& folder, const Encoder& encoder) {
  YMIR_TRY_ASSIGN(const Adapter source, read_adapter(folder));
  const Family& family = family_of(encoder.shape.family);
  const TensorMap tensors = with_plain_names(family, source.tensors);
  LoadedAdapter out;
  out.hash = source.sha256;
  out.max_length = source.notes.max_length;
  out.prompt_template = source.notes.prompt_template;
  out.labels = source.notes.labels;
  out.backbone = source.notes.backbone;
  YMIR_TRY_ASSIGN(out.setup.adapter,
                  make_adapter(encoder, method_of(source.config, family, tensors)));
  YMIR_TRY_ASSIGN(out.adapter, out.setup.adapter.layout.restore(tensors, ""));
  out.adapter = out.adapter.to(device_of(encoder));
  if (source.config.task_type == "CAUSAL_LM") {
    if (!encoder.output.weight.defined())
      return Error{
          ErrorCode::kInvalidArgument,
          "the adapter is of a language model, the backbone has no output layer: " + folder};
    out.setup.kind = TaskKind::kLanguageModel;
    out.setup.head = no_head();
    out.head = out.setup.head.layout.zeros();
    return out;
  }
  const auto classifier = tensors.find(saved_name(family.classifier, "weight"));
  if (classifier == tensors.end() || classifier->second.shape.size() != 2)
    return Error{ErrorCode::kInvalidArgument, "the adapter has no classifier: " + folder};
  out.setup.outputs = static_cast<int>(classifier->second.shape[0]);
  out.setup.head = make_head(encoder, out.setup.outputs);
  YMIR_TRY_ASSIGN(out.head, out.setup.head.layout.restore(tensors, ""));
  out.head = out.head.to(device_of(encoder));
  out.setup.kind =
      source.notes.task_kind == to_string(TaskKind::kMultiLabel) ? TaskKind::kMultiLabel
      : out.setup.outputs == 1 || source.notes.task_kind == to_string(TaskKind::kRegress)
          ? TaskKind::kRegress
          : TaskKind::kClassify;
  if (!out.labels.empty() && std::ssize(out.labels) != out.setup.outputs)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the head has {} outputs, ymir_adapter.json names {} labels",
                             folder, out.setup.outputs, out.labels.size())};
  if (out.labels.empty() && out.setup.kind == TaskKind::kClassify)
    for (int label = 0; label < out.setup.outputs; ++label)
      out.labels.push_back(std::to_string(label));
  return out;
}

}  // namespace ymir
