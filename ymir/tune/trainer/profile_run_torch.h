// What a profile measures besides its training steps: an evaluation where it stands, the task
// vector, and how much the adapters of possible sources would help (probes).
#pragma once

#include "ymir/core/order.h"
#include "ymir/tune/trainer/job_run_torch.h"

namespace ymir {

struct ProfileRequest {
  bool want_vector = false;
  std::vector<TaskOrder> probes{};
  double seconds = 0;  // that the run took so far
};

// A refused vector or probe is left out and told in the log; kUnavailable: told to stop now.
Result<Profile> measure_profile(JobRun& job, const RunContext& context,
                                const ProfileRequest& request);

}  // namespace ymir
