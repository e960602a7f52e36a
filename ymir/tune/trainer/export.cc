#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ymir/tune/checkpoint/peft_files.h"
#include "ymir/tune/trainer/export_torch.h"

namespace ymir {
namespace {

PeftConfig config_of(const ExportRequest& request, const TaskSetup& setup) {
  const MethodSpec& method = request.spec.method;
  PeftConfig config;
  config.base_model = request.spec.model;
  config.rank = method.rank;
  config.alpha = method.alpha;
  config.dropout = method.dropout;
  config.targets = method.targets;
  if (config.targets.empty()) config.targets = {"query", "value"};
  config.modules_to_save = {"classifier"};
  if (setup.head.own_pooler) config.modules_to_save.push_back("pooler");
  return config;
}

AdapterNotes notes_of(const ExportRequest& request, const TaskSetup& setup) {
  AdapterNotes notes;
  notes.task_kind = to_string(setup.kind);
  notes.labels = request.labels;
  notes.max_length = request.max_length;
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

MethodSpec method_of(const PeftConfig& config) {
  MethodSpec method;
  method.rank = config.rank;
  method.alpha = config.scale() * config.rank;  // with rank-stabilised LoRA, too
  method.dropout = config.dropout;
  method.targets = config.targets;
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
  setup.adapter.layout.collect(request.adapter, "", tensors);
  setup.head.layout.collect(request.head, "", tensors);
  // A best that has not changed since it was written stays.
  if (const auto old = read_adapter(request.folder); old && old->tensors == tensors)
    return ExportedAdapter{request.folder, old->sha256};
  YMIR_TRY(
      write_adapter(request.folder, config_of(request, setup), tensors, notes_of(request, setup)));
  YMIR_TRY_ASSIGN(const LoadedAdapter loaded, load_adapter(request.folder, encoder));
  YMIR_TRY(compare_logits(setup, request, loaded, encoder, check));
  return ExportedAdapter{request.folder, loaded.hash};
}

Result<at::Tensor> adapter_from_source(const LoraAdapter& adapter, const std::string& folder,
                                       const std::string& hash, double strength,
                                       std::uint64_t seed) {
  YMIR_TRY_ASSIGN(const Adapter source, read_adapter(folder));
  if (!hash.empty() && source.sha256 != hash)
    return Error{ErrorCode::kCorruption, "the source's adapter has another hash: " + folder};
  if (!(strength > 0 && strength <= 1))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("strength must be in (0, 1]: {}", strength)};
  return transferred_lora(adapter, source.tensors, source.config.rank, source.config.scale(),
                          strength, seed);
}

Result<LoadedAdapter> load_adapter(const std::string& folder, const Encoder& encoder) {
  YMIR_TRY_ASSIGN(const Adapter source, read_adapter(folder));
  LoadedAdapter out;
  out.hash = source.sha256;
  out.max_length = source.notes.max_length;
  YMIR_TRY_ASSIGN(out.setup.adapter, make_lora(encoder.shape, method_of(source.config)));
  const auto classifier = source.tensors.find(saved_name("classifier", "weight"));
  if (classifier == source.tensors.end() || classifier->second.shape.size() != 2)
    return Error{ErrorCode::kInvalidArgument, "the adapter has no classifier: " + folder};
  out.setup.outputs = static_cast<int>(classifier->second.shape[0]);
  out.setup.head = make_head(encoder, out.setup.outputs);
  out.setup.kind = out.setup.outputs == 1 ? TaskKind::kRegress : TaskKind::kClassify;
  out.labels = source.notes.labels;
  if (out.labels.empty() && out.setup.kind == TaskKind::kClassify)
    for (int label = 0; label < out.setup.outputs; ++label)
      out.labels.push_back(std::to_string(label));
  YMIR_TRY_ASSIGN(out.adapter, out.setup.adapter.layout.restore(source.tensors, ""));
  YMIR_TRY_ASSIGN(out.head, out.setup.head.layout.restore(source.tensors, ""));
  return out;
}

}  // namespace ymir
