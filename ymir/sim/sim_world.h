// SimWorld: a cluster that exists only as a heap of future happenings. It answers requests with
// the same reports as an agent with workers (DataChecked, RunStarted, EpochEvaluated with losses,
// ProfileFinished with trace, vector, probes and step times, CheckpointCommitted, JobFinished,
// RunStopped, RunLost), computed from the truth in a JobModel.
//
// One instant a call of wait(), so that the controller reacts to each before the next happens.
// What happens at one instant comes in a fixed order: faults, ends, evaluations, stops, profiles,
// starts, arrivals, commands; then by job, then by sequence. Same inputs, same reports, always.
// A run at constant speed is one segment: cost grows with reports, not with steps. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ymir/base/id_map.h"
#include "ymir/base/rng.h"
#include "ymir/control/world.h"
#include "ymir/sim/job_model.h"

namespace ymir {

struct SimOptions {
  std::vector<int> nodes{4};  // slots of each
  // All nodes (then of one size) are one place: a run may span several.
  bool one_place = false;
  std::string hardware = "simulated";
  Seconds start_time{2};             // from the order to the first step
  Seconds handover_time{0};          // more, where another run has left a slot at that instant
  Seconds check_time{0};             // of the data check
  Time horizon = from_seconds(1e7);  // the simulation ends here at the latest
  std::uint64_t seed = 0;            // of the noise of evaluations
  Result<> validate() const;
};

class SimWorld final : public World {
 public:
  SimWorld(SimOptions options, JobModel model);

  // --- what the outside will do; before run() or while it goes on ---
  void submit_at(Time at, JobId job, JobSpec spec);
  void hold_at(Time at, JobId job);
  void release_at(Time at, JobId job);
  void cancel_at(Time at, JobId job);
  void kill_worker_at(Time at, JobId job);             // of the run it is in; nothing when in none
  void lose_node_at(Time at, int node, Time back_at);  // kNever: it stays away
  void stop_after(Time at) { options_.horizon = at; }
  // No further job will end by itself: finished() from now on.
  void finish() { done_ = true; }
  // At that moment finished() is true until controller_restarted(): the controller dies there.
  void break_at(Time at);
  bool broken() const { return broken_; }
  // What a new controller finds: every worker of the old one is gone, the nodes join again.
  void controller_restarted();

  // --- World ---
  Time now() const override { return now_; }
  std::vector<Event> wait(Time deadline) override;
  Result<> request(const Action& action) override;
  bool finished() const override { return done_ || broken_ || now_ >= options_.horizon; }

  const JobModel& model() const { return model_; }
  // True progress of a job as of its newest committed checkpoint.
  double progress_of(JobId job) const;
  // Trained, never committed: of all jobs, of one.
  std::int64_t steps_lost() const;
  std::int64_t steps_lost(JobId job) const;

 private:
  struct TaskState {  // what a checkpoint holds
    std::int64_t step = 0;
    double progress = 0;
    Seconds trained{};
  };
  struct Task {
    const TaskOrder* order = nullptr;  // of the run's order
    TaskState from{};                  // at the start of the run
    double rate = 0;                   // progress a step
    std::int64_t committed = 0;        // newest committed step
    std::int64_t next_loss = 0;        // first step of the next loss interval
  };
  struct Run {
    StartRun order{};
    std::vector<Task> tasks{};
    Time first_step{};
    Seconds step{};
    bool started = false, ended = false;
    bool takes_over = false;                // a slot of another run, at the instant it was left
    std::int64_t reached = 0;               // steps handled so far
    std::optional<std::int64_t> stop_at{};  // boundary of an asked-for stop
    std::int64_t profile_end = 0;
    std::uint64_t generation = 0;  // of the pending happening
  };
  enum class Kind {
    kChecked,
    kSubmit,
    kHold,
    kRelease,
    kCancel,
    kKill,
    kLose,
    kReturn,
    kBreak,
    kBegin,
    kMilestone
  };
  struct Happening {
    Time at{};
    std::uint64_t sequence = 0;
    Kind kind = Kind::kMilestone;
    JobId job{};
    RunId run{};
    std::uint64_t generation = 0;
    int node = 0;
  };
  struct Later {
    bool operator()(const Happening& a, const Happening& b) const {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };
  // Reports of one happening stay together; bundles of one instant are sorted by rank and job.
  struct Bundle {
    int rank = 0;
    JobId job{};
    std::uint64_t sequence = 0;
    std::vector<EventBody> bodies{};
    std::string actor = "agent";
  };

  void push(Happening happening);
  static Bundle one(int rank, JobId job, EventBody body, std::string actor = "agent");
  std::optional<Bundle> happen(const Happening& happening);
  Bundle milestone(Run& run);
  Bundle begin(Run& run);
  Bundle kill(JobId job);
  Bundle lose(int node, bool place_too);
  void join(int node);
  void schedule_next(Run& run);
  std::int64_t next_step(const Run& run) const;
  Time time_of(const Run& run, std::int64_t step) const;
  std::int64_t boundary_after(const Run& run, Time at) const;
  void start(const StartRun& order);
  int num_places() const;
  int num_nodes(const StartRun& order) const;
  Seconds start_time(const Run& run) const;
  void stop(const StopRun& order);
  void close(Run& run, const std::string& why, const std::set<JobId>& ended, Bundle& bundle);
  void lose_run(Run& run, const std::string& why, bool fault, Bundle& bundle);
  void commit(Run& run, Task& task, Bundle& bundle);
  static JobFinished end_of(const Run& run, const Task& task, const std::string& reason,
                            const Evaluation& evaluation, std::int64_t step);
  Evaluation evaluate(const Run& run, const Task& task, std::int64_t at);
  bool ends(const Task& task, const Evaluation& evaluation, std::string* reason) const;
  Profile profile(Run& run);
  std::vector<LossPoint> losses(Task& task, std::int64_t upto) const;
  TaskState state_at(const Run& run, const Task& task, std::int64_t steps) const;
  StepTiming timing(const Run& run, const Task& task) const;

  SimOptions options_;
  JobModel model_;
  Time now_{};
  bool done_ = false, broken_ = false;
  std::uint64_t sequence_ = 0, next_place_ = 1;
  IdMap<JobId, std::int64_t> steps_lost_;
  std::vector<Happening> heap_;
  std::vector<Bundle> at_once_;                      // answers of requests, told at the next wait
  std::map<int, PlaceId> place_of_node_;             // those that are there
  std::map<std::pair<PlaceId, int>, Time> left_at_;  // slots, where a hand-over costs something
  IdMap<RunId, Run> runs_;
  std::set<RunId> refused_;  // asked to stop before they were asked to start
  std::unordered_map<std::string, TaskState> checkpoints_;  // by path
  IdMap<JobId, TaskState> newest_;
  IdMap<JobId, JobSpec> specs_;
};

}  // namespace ymir
