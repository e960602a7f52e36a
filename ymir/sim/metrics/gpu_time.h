// GpuTime: where the GPUs' time went, in whole microseconds, so that it adds up exactly: useful +
// redone + switch + profile + blocked + idle = GPUs x (end - begin). Idle time is counted on its
// own, by a sweep over instants, not as the rest; so the sum is a check (R1). Pure.
#pragma once

#include <vector>

#include "ymir/sim/metrics/record.h"

namespace ymir {

struct GpuTime {
  Micro useful = 0;              // training that counted
  Micro redone = 0;              // training that was lost
  Micro switching = 0;           // from the request of a run to its first step
  Micro profile = 0;             // profiling runs, their switch included
  Micro blocked = 0;             // held after the job had ended
  Micro idle_waiting = 0;        // free while a job waited
  Micro idle_empty = 0;          // free, and nobody waited
  Micro by_mode[3] = {0, 0, 0};  // of useful: normal, temporal, spatial

  Micro idle() const { return idle_waiting + idle_empty; }
  Micro sum() const { return useful + redone + switching + profile + blocked + idle(); }
};
GpuTime gpu_time(const RunRecord& record);

// The state of the cluster between instants at which it changes, for pictures.
struct ClusterPoint {
  Micro at = 0;
  int training = 0, switching = 0, profiling = 0;  // GPUs
  int waiting = 0, active = 0;                     // jobs
};
std::vector<ClusterPoint> cluster_over_time(const RunRecord& record);

}  // namespace ymir
