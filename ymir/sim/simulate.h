// simulate(): one workload under several policies and seeds, in one world with one truth, and what
// came of it as files (docs/simulate.md): DIR/POLICY/{jobs.csv,summary.json,events.jsonl,
// timeline.csv,rounds.csv,pairs.csv}, further seeds in DIR/POLICY/seed-K/, and DIR/{compare.csv,
// seeds.csv,report.html}.
//
// The controller, the policies, the stop-loss and the log are those of the service; only the world
// is not. NAME@SOURCE are public simulators and run in their own world. Same inputs, byte-identical
// events.jsonl, on any number of threads: they share nothing but the inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ymir/sim/metrics/summary.h"
#include "ymir/sim/scenario.h"
#include "ymir/sim/trace/trace.h"
#include "ymir/sim/workload.h"

namespace ymir {

struct SimulateOptions {
  std::vector<std::string> policies{"ymir"};
  int nodes = 0, gpus_per_node = 0;  // 0: as the workload says
  Seconds interval{0};               // of the rounds; 0: 120 s, and that of each public simulator
  std::vector<std::uint64_t> seeds{0};
  int threads = 1;
  double noise = 0;           // half width of the error of an evaluation
  double theta = 1.1;         // true TranWt from which a merge that was not made is missed
  std::string rho = "share";  // the formula of rho_max
  std::string profiles{};     // folder, for public simulators
  // --set KEY=VALUE. A key that names a policy ("tiresias.limit") is kept from the others.
  std::map<std::string, std::string> settings{};
  std::string baseline{};  // of the comparison; empty: the first policy that is not ymir's
  std::string out{};       // folder; made when absent
  // The same runs again for each value of one setting, told as a curve of each policy in sweep.csv
  // and in the report. "error": of all three links of the beliefs; "density": of useful pairs, the
  // gains drawn anew; else a setting.
  std::string sweep_key{};
  std::vector<double> sweep_values{};
  Result<> validate() const;
};

// What is simulated. The public simulators read the trace, the controller the workload; a workload
// also tells what is true of the jobs, for metrics.
struct SimulationInput {
  std::optional<Workload> workload{};
  std::optional<Trace> trace{};
  std::string name{};  // of the file, for the report
  std::vector<std::string> warnings{};
};

struct SimulationProgress {
  int runs_done = 0, runs = 0;
  double fraction = 0;  // of all, jobs that ended counted
};

struct SimulationTold {
  std::function<void(const SimulationSummary&)> summary{};  // of each run when its files are there
  std::function<void(const SimulationProgress&)> progress{};  // often; one call at a time
};

// Beliefs of the policies `ymir*` but `ymir:oracle`, and of the textbook policies, come from
// `estimator` (called once a run, from any thread); without it all use the oracle. An unknown
// policy or setting is an error before anything runs. Summaries in the order of policies, then
// seeds; an invariant that is broken stands in its summary.
Result<std::vector<SimulationSummary>> simulate(const SimulationInput& input,
                                                const SimulateOptions& options,
                                                const MakeBeliefs& estimator,
                                                const SimulationTold& told = {});
Result<std::vector<SimulationSummary>> simulate(const Workload& workload,
                                                const SimulateOptions& options,
                                                const MakeBeliefs& estimator);

// What a run costs more without a trick of the worker. Nobody has measured these parts apart from
// the whole start: both are guesses, to be set by world.loader_s and world.handover_s.
struct WorldCosts {
  double loader_s = 10;   // ymir:no-early-loader, each start: making the data loaders
  double handover_s = 2;  // ymir:no-pipeline-switch, where a run takes over a slot: weights out
  static Result<WorldCosts> from(const std::map<std::string, std::string>& settings);
};

// What the settings error.LINK say of the beliefs of a simulation; those of neither beliefs nor
// world are the policy's.
Result<OracleErrors> errors_of(const std::map<std::string, std::string>& settings,
                               std::uint64_t seed);
std::map<std::string, std::string> policy_settings(std::map<std::string, std::string> settings);

// The scenario that one policy of a simulation runs.
Scenario scenario_of(const Workload& workload, const SimulateOptions& options,
                     const std::string& policy);

}  // namespace ymir
