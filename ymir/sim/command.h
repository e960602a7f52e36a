// The commands `ymir simulate` and `ymir workload`: options in, texts and an exit code out
// (contracts.md, "Simulation"). No terminal, no exit; files are read and written here.
#pragma once

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
  std::string format = "ymir";  // the only one so far
  std::vector<std::string> policies{"ymir"};
  int nodes = 0, gpus_per_node = 0;  // 0: as the workload says
  double interval = 120;             // seconds
  std::uint64_t seed = 0;
  std::vector<std::string> set{};  // KEY=VALUE, for the policies
  std::string out{};               // folder
  bool oracle = false;             // beliefs from the truth for every policy
  bool json = false;
};
SimCommandOutput run_simulate_command(const SimulateCommand& command, const MakeBeliefs& estimator);

// `ymir workload generate`: writes `out`, or prints the workload when it is empty.
struct WorkloadCommand {
  WorkloadOptions options{};
  std::string out{};
};
SimCommandOutput run_generate_command(const WorkloadCommand& command);
// `ymir workload lint FILE`: load and warnings; exit code 1 when it has faults.
SimCommandOutput run_lint_command(const std::string& file, const std::string& format, bool json);

}  // namespace ymir
