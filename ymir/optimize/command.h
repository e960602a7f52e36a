// The command `ymir optimize`: solves, checks or generates one round problem as JSON.
#pragma once

#include <string>

#include "ymir/optimize/planner.h"

namespace ymir {

struct OptimizeCommand {
  std::string instance{};     // file, "-": standard input
  std::string check_plan{};   // file with an answer to check ("-": standard input); empty: solve
  std::string generate{};     // "jobs=500,gpus=240,pairs=0.1,seed=7": write an instance instead
  std::string certificate{};  // file to write the certificate to; empty: none
  bool json = false;          // the answer as JSON instead of a table
  double relative_gap = 0;    // accept a plan within this of the bound
};

struct CommandOutput {
  int exit_code = 0;  // 0 done, 1 the check found a fault, 2 bad usage or input
  std::string out{}, err{};
};

CommandOutput run_optimize_command(const OptimizeCommand& command);

}  // namespace ymir
