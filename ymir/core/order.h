// Orders: what the controller asks of the outside, down to the worker. Each is idempotent by its
// RunId; the outcome comes back as Events. Values; encoded by core/codec.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ymir/core/job.h"

namespace ymir {

// The start of a job's tensors: its own checkpoint, a source's adapter, or the seed.
struct TaskOrder {
  JobId job{};
  JobSpec spec{};
  std::string folder{};           // of this job, below the state folder; checkpoints go there
  std::string checkpoint{};       // resume from here (folder); empty: from the start
  std::string checkpoint_hash{};  // verified before use
  std::int64_t from_step = 0;     // of that checkpoint
  JobId source{};                 // temporal, at step 0 only: start from this job's adapter
  std::string source_adapter{};   // folder (PEFT files)
  std::string source_hash{};      // sha256 of its adapter_model.safetensors
  double strength = 1;
};

struct StartRun {
  RunId run{};
  Mode mode = Mode::kNormal;
  std::vector<TaskOrder> tasks{};  // one, or two when spatial
  PlaceId place{};
  std::vector<int> slots{};
  int num_threads = 1;             // per slot, set by the world
  bool profile = false;            // ends by itself after `profile_*`, reports ProfileFinished
  std::int64_t profile_steps = 0;  // of training in this run; 0: only measures and probes
  Seconds profile_time{0};         // of training, at most; 0: only steps count
  bool want_vector = false;
  std::vector<TaskOrder>
      probes{};  // sources to probe (source, source_adapter, source_hash, strength)
};

// At the next optimizer-step boundary: checkpoint each task, then RunStopped. `now`: at once, what
// was done since the last checkpoint is lost.
struct StopRun {
  RunId run{};
  bool now = false;
};

// Reads the job's files without training; answers DataChecked or DataRefused.
struct CheckData {
  JobId job{};
  JobSpec spec{};
};

// The answer is no longer wanted (the job was cancelled): what reads for it is ended.
struct StopCheck {
  JobId job{};
};

using Action = std::variant<StartRun, StopRun, CheckData, StopCheck>;

}  // namespace ymir
