// KnownLinks: links of the forecast that somebody knows, for studies of what a better estimate of
// one of them would be worth (`ymir:oracle-LINK`). An empty one is estimated.
#pragma once

#include <functional>
#include <optional>

#include "ymir/core/snapshot.h"

namespace ymir {

struct KnownLinks {
  // What a probe of the target with the source's adapter would measure.
  std::function<double(JobId source, JobId target)> similarity{};
  // Steps alone / steps with.
  std::function<double(JobId source, JobId target, Mode mode)> speedup{};
  // At which step a job meets its target: as it stands, merged or not; and from the start alone.
  struct Steps {
    double here = 0, alone = 0;
  };
  std::function<Steps(const Snapshot& now, const JobView& job)> steps{};
  // Wall seconds, alone or in a joint step with `mate`.
  std::function<double(JobId job, int gpus, std::optional<JobId> mate)> step_seconds{};
};

}  // namespace ymir
