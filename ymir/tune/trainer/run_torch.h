// The course of one run: steps, evaluations, checkpoints, the end. One task, a spatial pair, or
// several tasks of their own whose rows pass the backbone as one batch; of these the others go on
// when one ends.
#pragma once

#include "ymir/tune/trainer/job_run_torch.h"

namespace ymir {

struct RunMembers {
  std::vector<std::unique_ptr<JobRun>> jobs{};
  bool pair = false;   // two jobs share an adapter; else each has its own
  JointState joint{};  // of a pair
};

// Binds two prepared jobs to one adapter. kConflict: other method or sites, or progress that was
// not made together.
Result<> join(RunMembers& members, const RunContext& context);
// Whether the jobs can pass the backbone as one batch. kConflict: why not.
Result<> check_together(const RunMembers& members);

// How long a profile may train: no step at all when `steps` is 0 (it only measures and probes).
struct ProfileLimit {
  bool profile = false;
  std::int64_t steps = 0;
  Seconds time{0};  // 0: only steps count
  bool met(std::int64_t trained, double seconds) const {
    return profile && (trained >= steps || (time.count() > 0 && seconds >= time.count()));
  }
};
enum class RunEnd { kStopped, kStoppedNow, kFinished, kPartnerFinished, kProfileDone };

// Trains until a job ends, the profile's limit is met or a stop is wished. Jobs that end are
// finished and reported; nothing is written for the others yet.
Result<RunEnd> train(RunMembers& members, const RunContext& context, const ProfileLimit& limit);

// Checkpoints of the jobs that have not ended (as a pair when it still is one).
Result<> leave(RunMembers& members, const RunContext& context, bool as_pair);

}  // namespace ymir
