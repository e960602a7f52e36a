// A job's checkpoint: the folder <job>/checkpoint/step-<k> with state.json and state.safetensors.
// Written whole or not at all; the hash of state.json names it, and state.json names the hash of
// the tensors. Holds nothing that depends on the number of threads or ranks.
#pragma once

#include <optional>
#include <string>

#include "ymir/tune/trainer/progress.h"
#include "ymir/tune/trainer/task_torch.h"

namespace ymir {

// What must be equal for a resumed job to go on bit for bit.
struct Numerics {
  std::string instruction_set{}, library{}, precision{};
  int threads = 1;
  std::string text() const;
};

struct CheckpointIdentity {
  JobId job{};
  RunId run{};
  Mode mode = Mode::kNormal;
  JobId partner{};
  std::string settings_hash{};  // of all that decides the course of training
  std::string numerics{};
};

// Tensors of the best evaluation so far.
struct BestTensors {
  at::Tensor adapter{}, head{};  // undefined: none yet
};

struct SavedTask {
  CheckpointIdentity identity{};
  Progress progress{};
  at::Tensor adapter{}, head{};
  Moments adapter_moments{}, head_moments{};
  BestTensors best{};
  std::optional<Moments> joint{};
};

struct CheckpointPlace {
  std::string path{}, hash{};
};

// Under `folder`/checkpoint. A name that is taken (by a lost run's work) gets the run's id as end.
Result<CheckpointPlace> save_checkpoint(const std::string& folder, const SavedTask& saved,
                                        const TaskSetup& setup);
// `hash` empty: not compared. kCorruption: hashes or shapes differ; kConflict: other settings.
Result<SavedTask> load_checkpoint(const std::string& path, const std::string& hash,
                                  const std::string& settings_hash, const TaskSetup& setup);

}  // namespace ymir
