// The world of the Pollux study's simulator (clock=pollux): every 60 s all jobs
// step in the order of the workload, then the policy is asked, then changed jobs pay 30 s of
// restart.
//
// Doubles, in the artifact's order of operations, so that its published completion times are met to
// the last bit. One run is a function of its inputs and keeps its state in World; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/artifact/artifact.h"
#include "ymir/sim/profiles/pollux_profile.h"

namespace ymir::artifact::pollux {

using NodeList = std::vector<int>;  // node of each GPU of a job, in the order it was given them

struct Cluster {
  int nodes = 0, gpus_per_node = 0;
  int gpus() const { return nodes * gpus_per_node; }
};

// What one job has just measured while it ran: the input of a goodput model.
struct Measured {
  int nodes = 0, replicas = 0;
  PolluxSplit split{};
  PolluxStepTime time{};
  PolluxGradStats grad{};
};

struct Job {
  const TraceJob* trace = nullptr;
  const PolluxApplication* app = nullptr;
  NodeList nodes{};              // empty: waits
  std::vector<int> placement{};  // GPUs on each node, by runs of equal nodes
  PolluxSplit split{};
  double clock_s = 0, delay_s = 0;  // own time; rest of the restart
  double progress = 0;
  int epoch = 0;
  double attained_gpu_s = 0;  // while it trains or restarts: what policies read
  double placed_s = 0;        // since when it holds these nodes
  int starts = 0;
  std::optional<double> completion_s{};

  int replicas() const { return static_cast<int>(nodes.size()); }
};

// What a policy sees, and what it may keep between rounds lies in its own object.
struct Round {
  double now_s = 0;
  Cluster cluster{};
  std::span<const Job> jobs{};            // all of the workload, in its order
  std::span<const std::size_t> active{};  // submitted and not complete, in that order
};

// Two ways in which a policy meets the world. `decide` gives every job its GPUs (by index of job).
// The others, optional, are for policies that choose the batch size: `split` is asked when a job
// has been placed and after each stretch of running, `measured` is told before each stretch.
struct Discipline {
  std::function<Result<std::vector<NodeList>>(const Round&)> decide{};
  std::function<PolluxSplit(std::size_t job, const Job&)> split{};
  std::function<void(std::size_t job, const Measured&)> measured{};
};

struct WorldOptions {
  Cluster cluster{};
  double interval_s = 60, restart_s = 30;
  double interference = 0;  // slowdown of jobs over several nodes that share one, 0..1
  double horizon_s = 1e8;   // jobs that have not ended then are censored
  Result<> validate() const;
};

Result<Run> run_world(const Trace& trace, const PolluxProfile& profile, const WorldOptions& options,
                      const Discipline& discipline);

// GPUs on each run of equal consecutive nodes: {3, 3, 5} is {2, 1}.
std::vector<int> run_lengths(const NodeList& nodes);
// Takes GPUs for one job from the emptiest nodes (ties: the lowest); `free` is by node and must
// hold enough.
NodeList take_emptiest_first(int gpus, std::vector<int>& free);
// GPUs of each node that no job of `held` has.
std::vector<int> free_gpus(const Cluster& cluster, std::span<const NodeList> held);

}  // namespace ymir::artifact::pollux
