// Adapters as PEFT folders, out and in. After every export the files are read back
// into a fresh binding and one batch is compared bit for bit with the live tensors.
#pragma once

#include <string>
#include <vector>

#include "ymir/core/event.h"
#include "ymir/tune/trainer/evaluate_torch.h"
#include "ymir/tune/trainer/progress.h"
#include "ymir/tune/trainer/task_torch.h"

namespace ymir {

struct ExportRequest {
  std::string folder{};
  JobSpec spec{};
  JobId job{}, partner{};
  Mode mode = Mode::kNormal;
  std::vector<std::string> labels{};
  std::string data_key{}, backbone{}, numerics{};
  int max_length = 0;
  Progress progress{};
  at::Tensor adapter{}, head{};
};
struct ExportedAdapter {
  std::string folder{}, hash{};  // sha256 of adapter_model.safetensors
};

// Durable when it returns. A folder that holds the same tensors already is left as it is. `check`:
// rows for the comparison; kInternal when it fails.
Result<ExportedAdapter> export_adapter(const ExportRequest& request, const TaskSetup& setup,
                                       const Encoder& encoder, const EvaluationRows& check);

// The first values of a job that starts from another's exported adapter.
Result<at::Tensor> adapter_from_source(const AdapterPlan& adapter, const Encoder& encoder,
                                       const std::string& folder, const std::string& hash,
                                       double strength, std::uint64_t seed);

// An exported adapter with its head, ready to evaluate.
struct LoadedAdapter {
  TaskSetup setup{};
  at::Tensor adapter{}, head{};
  std::vector<std::string> labels{};
  int max_length = 0;  // 0: the adapter does not say
  std::string prompt_template{};
  std::string hash{};      // of its tensor file
  std::string backbone{};  // key of the one it was trained on; empty: the adapter does not say
};
Result<LoadedAdapter> load_adapter(const std::string& folder, const Encoder& encoder);
// What the model's own folder has: a head that was merged or trained with it, or a language model's
// output layer; no adapter. kInvalidArgument: neither.
Result<LoadedAdapter> load_own_head(const ModelFiles& model, const Encoder& encoder);

}  // namespace ymir
