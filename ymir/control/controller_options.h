// ControllerOptions: the knobs of the controller. A value.
#pragma once

#include <cstdint>
#include <string>

#include "ymir/base/result.h"
#include "ymir/base/time.h"
#include "ymir/control/profiling.h"
#include "ymir/schedule/stop_loss.h"

namespace ymir {

struct ControllerOptions {
  Seconds round{120};             // between rounds
  bool round_on_events = true;    // also at once, when jobs came or ended and a slot is idle
  std::string artifacts{};        // absolute folder; each job has its own below: artifacts/j17
  std::int64_t effort = 400'000;  // of a round's solver, in states
  Seconds round_guard{0};         // wall-clock limit of a round; 0 = none (simulation)
  Seconds resend{30};             // a request that nobody answered is sent again
  Seconds start_timeout{300};     // a run that has not started by then is lost
  int max_faults = 3;             // crashes of a job's own making until it fails
  bool publish = true;            // snapshots for other threads; off in simulations
  StopLossOptions stop_loss{};
  ProfilingOptions profiling{};
  Result<> validate() const;
};

}  // namespace ymir
