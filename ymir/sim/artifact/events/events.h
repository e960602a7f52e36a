// The event simulator of Tiresias: whole seconds, numbers of GPUs, no cost
// of a restart, no placement. An instant is the next arrival, end or, where strictly earlier, a
// jump to where a queue changes. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ymir/sim/artifact/artifact.h"

namespace ymir::artifact::events {

enum class Order {
  kAttained,         // queues by attained service (2D-LAS)
  kRemaining,        // shortest remaining time
  kRemainingByGpus,  // times GPUs
  kFewestGpus,
  kFifo,  // until the first that does not fit; no preemption
  kFit,   // passing over what does not fit; no preemption
};

struct Rules {
  Order order = Order::kAttained;
  // The published prediction of a demotion divides what is left of a limit in GPU-seconds, less
  // seconds, by the GPUs: jobs of several GPUs fall late.
  bool late_demotion = true;
  bool service_in_gpus = true;         // limits count GPU-seconds, not seconds
  std::vector<std::int64_t> limits{};  // ascending; one queue more than limits
  double promote = 0;                  // waited >= this x executed: first queue; 0: never
};

struct Job {
  int gpus = 1;
  std::int64_t submission = 0, duration = 0;
  bool runs = false;
  std::int64_t last = 0;      // instant of the last account
  std::int64_t total = 0;     // seconds run
  std::int64_t executed = 0;  // since the last promotion
  std::int64_t waited = 0;    // since then, once it has run
  std::int64_t pending = 0;   // seconds not run, in all
  std::int64_t start = -1, end = -1;
  int queue = 0, starts = 0, promotions = 0;
};

// Fills `jobs` (ascending in submission, none larger than the cluster) and tells `changed` each
// (instant, job, runs). Returns the number of instants.
using Changed = std::function<void(std::int64_t, int, bool)>;
std::int64_t simulate(std::vector<Job>& jobs, int num_gpus, const Rules& rules,
                      const Changed& changed);

}  // namespace ymir::artifact::events
