// Public simulators, equalled to the last job: each has its own clock, its own job model and its
// own policies, faults included (`tiresias@pollux`, `srtf@titan`, `srtf@events`, ...). They share
// nothing with the controller: equality is their whole point, and what they do is often not what a
// correct scheduler would (docs/decisions/).
//
// A run is a function of its inputs: no clock, no threads, no randomness but `seed`. Doubles are
// added and multiplied in the order of the artifact.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/trace/trace.h"

namespace ymir::artifact {

struct Options {
  int nodes = 0, gpus_per_node = 0;
  double interval_s = 0;  // 0: that of the artifact
  std::uint64_t seed = 0;
  std::string profiles{};                         // folder
  std::map<std::string, std::string> settings{};  // --set KEY=VALUE; an unknown key is an error
};

struct JobResult {
  std::string name{};
  double submission_s = 0, first_start_s = 0, completion_s = 0;
  double queueing_s = 0;   // without GPUs, from submission to completion
  double gpu_seconds = 0;  // held
  int restarts = 0;        // starts after the first
  int promotions = 0;      // to a better queue
  int requested_gpus = 0;
  int last_gpus = 0;      // when it ended
  bool finished = false;  // else censored
};

// A change of what a job holds, in order of time: the rows of events.jsonl.
struct Change {
  double at_s = 0;
  int job = 0;               // index into jobs
  std::vector<int> nodes{};  // node of each GPU; empty: it holds none now
};

struct Run {
  std::vector<JobResult> jobs{};  // in the order of the trace
  std::vector<Change> changes{};
  std::int64_t rounds = 0;
  std::vector<std::string> notes{};                // look-ups found in no table, faults kept
  std::map<std::string, std::string> constants{};  // by setting, as they were used
};

// One line a policy of a public artifact.
struct Policy {
  std::string name{};    // "tiresias@pollux"
  std::string format{};  // the trace it reads: "pollux"
  std::function<Result<Run>(const Trace&, const Options&)> run{};
};
const std::vector<Policy>& policies();

// The clocks, one a file group; policies() is their concatenation.
std::vector<Policy> pollux_policies();
std::vector<Policy> titan_policies();
std::vector<Policy> events_policies();

}  // namespace ymir::artifact
