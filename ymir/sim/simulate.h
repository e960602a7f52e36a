// simulate(): one workload under several policies, in one world with one truth, and what came of it
// as files (contracts.md, "Simulation"): DIR/POLICY/{jobs.csv,summary.json,events.jsonl}.
//
// The controller, the policies, the stop-loss and the log are those of the service; only the world
// is not. Same inputs, byte-identical events.jsonl. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ymir/sim/scenario.h"
#include "ymir/sim/workload.h"

namespace ymir {

struct SimulateOptions {
  std::vector<std::string> policies{"ymir"};
  int nodes = 0, gpus_per_node = 0;               // 0: as the workload says
  Seconds interval{120};                          // of the rounds
  std::uint64_t seed = 0;                         // of the noise of evaluations
  double noise = 0;                               // half width of the error of an evaluation
  std::map<std::string, std::string> settings{};  // --set KEY=VALUE, for the policies
  std::string out{};                              // folder; made when absent
  Result<> validate() const;
};

// One policy's numbers; NaN where no job gives one.
struct SimulationSummary {
  std::string policy{};
  int finished = 0, censored = 0;
  double avg_jct_s = 0, p50_jct_s = 0, p99_jct_s = 0, max_jct_s = 0;
  double makespan_s = 0, avg_queueing_s = 0, longest_wait_s = 0;
  double rho_max = 0, rho_unfair_share = 0;
  std::map<std::string, double> mode_share{};   // of the jobs, by their last mode
  std::map<std::string, double> gpu_seconds{};  // useful switch profile idle
  std::int64_t rollbacks = 0, false_merges = 0, rounds = 0, unproved_rounds = 0;
  double solver_ms_mean = 0, solver_ms_p99 = 0, solver_ms_max = 0;
  double profile_wait_s = 0, extra_jct_s = 0, wall_s = 0;
};

// Beliefs of the policies `ymir*` but `ymir:oracle`, and of the textbook policies, come from
// `estimator` (a new one for each policy); without it all use the oracle. `told` hears each
// policy's summary when its files are written. An unknown policy or setting is an error before
// anything runs.
Result<std::vector<SimulationSummary>> simulate(
    const Workload& workload, const SimulateOptions& options, const MakeBeliefs& estimator,
    const std::function<void(const SimulationSummary&)>& told = {});

// The scenario that one policy of a simulation runs.
Scenario scenario_of(const Workload& workload, const SimulateOptions& options,
                     const std::string& policy);

}  // namespace ymir
