// A recorded log of the service, lived through again in the simulator: the same jobs arrive, are
// held, cancelled and lost at the same times, and what the log measured (steps to the target, time
// of a step by GPUs, starts, gains of transfers) is what is true. How far the simulated completion
// times are from the recorded ones says how far a simulation can be trusted. Pure; any thread.
#pragma once

#include <vector>

#include "ymir/sim/scenario.h"

namespace ymir {

// kInvalidArgument when the log holds no job that ran, or no place.
//
// What is not in a log is not made up: a job that never trained is left out, one that did not meet
// its target ends where it ended. The metric of the simulated jobs stands for their own.
Result<Scenario> scenario_of_log(const std::vector<Event>& log);

struct ReplayedJob {
  std::string name{};
  double recorded_start_s = 0, simulated_start_s = 0;  // first start, from submission
  double recorded_s = 0, simulated_s = 0;              // completion, from submission
};
struct ReplayReport {
  std::vector<ReplayedJob> jobs{};  // those that ended in both
  double recorded_avg_s = 0, simulated_avg_s = 0;
  double recorded_p99_s = 0, simulated_p99_s = 0;
  double worst = 0;  // largest |simulated / recorded - 1|
  double order = 1;  // Kendall's tau of the order of completion
};
// `scenario` as made from `log`; `run` what came of it.
ReplayReport compare_replay(const std::vector<Event>& log, const Scenario& scenario,
                            const ScenarioRun& run);

}  // namespace ymir
