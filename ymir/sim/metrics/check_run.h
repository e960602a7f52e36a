// check_run: what must hold of every run, whoever made it. Always on: at the end
// of each simulation, and on a real log. Returns what is broken, one line each, named R1..R9. Pure.
//
//   R1 GPU time adds up to GPUs x makespan, to the microsecond
//   R2 no GPU is used twice at a time, none that does not exist
//   R3 attained service is the integral of the GPUs held
//   R4 every job ended, finished or censored; nothing runs at the end
//   R5 runs begin before they end, jobs start after they were submitted
//   R6 a job that ended holds no GPU afterwards (public simulators: but to the end of a round)
//   R7 a job that was split goes on, or had nothing left to do
//   R8 no job is faster than the truth allows on its best allocation, in its best mode
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ymir/sim/metrics/record.h"

namespace ymir {

struct RunLimits {
  // Fewest seconds in which job i can run from its start to its end, over all numbers of GPUs and
  // all partners; empty: not known, R8 is left out.
  std::function<double(std::size_t job)> least_seconds{};
  bool until_horizon = false;  // jobs may be left over: the simulation was cut off (R4)
  // Of real workers: a run of an ended job is over when its worker says so, which takes a moment;
  // no run may begin after a job's end (R6).
  bool real_workers = false;
};
std::vector<std::string> check_run(const RunRecord& record, const RunLimits& limits = {});

}  // namespace ymir
