// The commands `ymir simulate` and `ymir workload`: options in, texts and an exit code out. No
// terminal, no exit; files are read and written here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ymir/sim/simulate.h"

namespace ymir {

struct SimCommandOutput {
  int exit_code = 0;  // 0 done, 1 a check found something, 2 bad usage or input
  std::string out{};
  std::string err{};
};

struct SimulateCommand {
  std::string workload{};       // file
  std::string format = "ymir";  // or one of trace_formats()
  std::string profiles{};       // folder: step times and curves of a trace's jobs
  std::vector<std::string> policies{"ymir"};
  int nodes = 0, gpus_per_node = 0;  // 0: as the workload says
  double interval = 0;               // seconds; 0: 120, and that of each public simulator
  std::string seeds = "0";           // "7", "1..10", "1,3,5"
  int threads = 1;
  double noise = 0;  // of evaluations
  std::string baseline{};
  std::string sweep{};  // KEY=V1,V2,...
  // KEY=VALUE, for the policies; rho, theta and truth.KEY are read here.
  std::vector<std::string> set{};
  std::string out{};    // folder
  bool oracle = false;  // beliefs from the truth for every policy
  bool json = false;
};
SimCommandOutput run_simulate_command(
    const SimulateCommand& command, const MakeBeliefs& estimator,
    const std::function<void(const SimulationProgress&)>& progress = {});

// `ymir simulate --list-policies`: one line each, those of the controller and the public ones.
SimCommandOutput run_list_policies_command(bool json);

// `ymir simulate --replay LOG`: the log lived through again under its own policy, or under
// `policies` when there are any, in its own cluster or in that of nodes and gpus_per_node; each
// compared with the run that was recorded, which stands in the report as `recorded`. Writes also
// DIR/replay.csv.
SimCommandOutput run_replay_command(const SimulateCommand& command, const std::vector<Event>& log,
                                    const MakeBeliefs& estimator);

// `ymir workload generate`: writes `out`, or prints the workload when it is empty.
struct WorkloadCommand {
  WorkloadOptions options{};
  std::string out{};
};
SimCommandOutput run_generate_command(const WorkloadCommand& command);
// `ymir workload lint FILE`: faults by line, warnings, and what the jobs ask of the cluster; exit
// code 1 when it has faults.
struct LintCommand {
  std::string file{};
  std::string format = "ymir";
  std::string profiles{};
  int nodes = 0, gpus_per_node = 0;  // 0: as the file says
  double window_s = 0;               // of the load; 0: from the first to the last submission
  bool json = false;
};
SimCommandOutput run_lint_command(const LintCommand& command);

}  // namespace ymir
