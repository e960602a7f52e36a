// World: the simulator of Titan: a clock of rounds, jobs that step from
// round to round, GPUs that are freed at rounds only, a placer that takes the fewest nodes.
//
// Lists are insertion-ordered and a job that moves goes to the end: ties of the policies depend on
// it. Each round: running jobs step, new ones are admitted, waiting ones wait, the policy decides.
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ymir/sim/artifact/artifact.h"
#include "ymir/sim/artifact/settings.h"
#include "ymir/sim/profiles/titan_profile.h"

namespace ymir::artifact::titan {

enum class State { kUnsubmitted, kPending, kRunning, kEnded };

struct Job {
  const TraceJob* asked = nullptr;
  const JobKind* kind = nullptr;
  State state = State::kUnsubmitted;
  std::vector<int> nodes{};                      // of each GPU, ascending; empty: it holds none
  StepRate rate{};                               // on them
  double switch_left = 0;                        // seconds before it trains
  double progress = 0;                           // samples
  double staying = 0, pending = 0, running = 0;  // seconds since submission, and of which kind
  double service = 0;                            // GPU-seconds with the switch
  double placed_at = 0;
  int starts = 0;
  int gpus() const { return static_cast<int>(nodes.size()); }
};

class World;
// Stops and starts jobs. Called once a round, also when there is nothing to decide on.
using Decide = std::function<Result<>(World&)>;

class World {
 public:
  // What the trace asks for must be there: a kind of the profile, no more GPUs than the cluster.
  static Result<World> make(const Trace& trace, const Options& options, const Settings& settings);
  Result<Run> run(double interval_s, const Decide& decide);

  double now() const { return now_; }
  int num_gpus() const { return nodes_ * gpus_per_node_; }
  int free_gpus() const;
  Job& job(int index) { return jobs_[static_cast<std::size_t>(index)]; }
  int num_jobs() const { return static_cast<int>(jobs_.size()); }
  const std::vector<int>& pending() const { return pending_; }
  const std::vector<int>& running() const { return running_; }
  const std::vector<int>& arrived() const { return arrived_; }  // in this round
  // Seconds of this round in which the job was there.
  double elapsed(const Job& job) const;

  // Remaining seconds on `gpus` of as few nodes as can be, as Titan believes.
  Result<double> predicted(int job, int gpus);
  // Takes the GPUs of a running job, which goes to the end of pending().
  void stop(int job);
  // Places in descending GPUs (ties: as given); who finds a place goes to the end of running(), in
  // the order given. The others wait.
  struct Start {
    int job = 0;
    int gpus = 0;
  };
  Result<> start(const std::vector<Start>& starts);

 private:
  World() = default;
  void step(Job& job);
  void end_jobs();
  void admit();
  std::optional<std::vector<int>> find_nodes(int gpus) const;
  void release(int job);
  std::vector<int> counts_of(const std::vector<int>& nodes) const;
  Run report(std::int64_t rounds) const;

  std::unique_ptr<const TitanProfile> profile_{};  // jobs point into it
  int nodes_ = 0, gpus_per_node_ = 0;
  double checkpoint_s_ = 0;
  std::vector<Job> jobs_{};
  std::vector<JobResult> results_{};
  std::vector<int> by_submission_{};
  std::size_t next_arrival_ = 0;
  std::vector<int> pending_{}, running_{}, arrived_{};
  std::vector<int> free_{};  // GPUs of each node
  std::vector<Change> changes_{};
  double now_ = 0, before_ = 0;
  std::map<const JobKind*, std::vector<std::optional<StepRate>>> packed_{};
};

}  // namespace ymir::artifact::titan
