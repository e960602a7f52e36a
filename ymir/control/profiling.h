// Profiling is scheduled: a profile is the first normal training steps of a job,
// under observation, and takes slots like any run. A token bucket bounds what profiles may take;
// jobs over the quota are not held back, they start in normal mode and are measured in place.
#pragma once

#include <cstdint>
#include <map>

#include "ymir/base/result.h"
#include "ymir/core/event.h"
#include "ymir/core/snapshot.h"

namespace ymir {

struct ProfilingOptions {
  bool enabled = true;        // off: every job starts without a profile
  double share = 0.1;         // of the cluster's slot time, over `window`
  Seconds window{3600};       // the bucket holds share x slots x window, at least one profile
  double share_of_job = 0.1;  // a profile's steps, of the job's own
  std::int64_t min_steps = 10, max_steps = 200;
  Seconds max_time{120};  // of one profile
  bool vectors = true;    // ask for task vectors, of jobs that share
  bool probes = true;     // ask for probes of sources, in the profile and while a job waits
  int probe_runs = 2;     // between two rounds, for jobs that wait (zero training steps)
  Result<> validate() const;
};

// The bucket: slot time that profiles may still take. A fold of the log, so that a restart does
// not refill it.
class ProfileQuota {
 public:
  explicit ProfileQuota(ProfilingOptions options) : options_(options) {}
  // After the event was applied to `after`.
  void observe(const Event& event, const Snapshot& after);
  // Whether a profile of `slots` slots may start now.
  bool allows(const Snapshot& now, int slots) const;

 private:
  struct Running {
    Time since{};
    int slots = 0;
  };
  double capacity(const Snapshot& now) const;  // slot-seconds
  double level(const Snapshot& now) const;     // before what runs is counted
  ProfilingOptions options_;
  std::map<RunId, Running> running_{};
  double level_ = 0;  // slot-seconds, as of filled_
  Time filled_{};
  bool filled_once_ = false;
};

// Training steps of `job`'s profile: a share of its own steps within the options' limits.
std::int64_t profile_steps(const JobView& job, const ProfilingOptions& options);

}  // namespace ymir
