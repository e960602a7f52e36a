// Snapshot: the cluster as of one event, a fold of the log and nothing else. Ordered containers:
// the order of iteration is part of every decision. The controller's thread owns it; others get
// shared_ptr<const Snapshot>.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ymir/base/id_map.h"
#include "ymir/base/result.h"
#include "ymir/core/event.h"

namespace ymir {

// States of a job. A state's rank never falls; ended states absorb. A job whose profile
// was cut off stays kProfiling without a run, until the profile goes on or it starts without one.
enum class JobState {
  kSubmitted,
  kValidating,
  kQueued,
  kProfiling,
  kRunning,
  kSplitting,
  kPreempted,
  kSucceeded,
  kFailed,
  kCancelled
};

struct Checkpoint {
  std::int64_t step = 0;
  std::string path{}, hash{};
  std::string adapter{}, adapter_hash{};  // best adapter so far, PEFT files
};

struct Transfer {  // one merge in a job's life
  JobId partner{};
  Mode mode = Mode::kTemporal;
  RunId run{};
  Card card{};
  double strength = 1;
  std::int64_t from_step = 0;
  enum class Verdict { kOpen, kKept, kSplit } verdict = Verdict::kOpen;
  std::string why{};
  std::vector<Evaluation> evaluations{};  // of this job while merged
  std::optional<TransferSettled> settled{};
};

struct RunView {
  RunId run{};
  Assignment what{};
  std::vector<JobId> jobs{};
  bool profile = false;
  PlaceId place{};
  std::vector<int> slots{};
  std::vector<std::int64_t> from_steps{};
  Time requested{};
  std::optional<Time> started{};
  // The log says that it must end: its StopRun is asked for until RunStopped or RunLost closes it.
  bool stopping = false;
  std::string stop_why{};  // round split partner_finished paused cancelled
  JobId goes_back{};       // of a split: continues from its own_checkpoint
};

struct JobView {
  JobId id{};
  JobSpec spec{};
  JobState state = JobState::kSubmitted;
  std::uint64_t version = 0;  // grows with each change that a round reads
  Time submitted{};
  std::optional<Time> first_started{}, finished{};
  bool held = false;
  DataFacts facts{};
  std::optional<Profile> profile{};
  bool profile_settled = false;                // finished, failed or not wanted
  RunId run{};                                 // active run, 0 = none
  std::int64_t steps_done = 0;                 // committed
  std::int64_t profile_steps = 0;              // of these, made by its profile
  bool merged = false;                         // the present path has learnt from a partner
  std::optional<Checkpoint> checkpoint{};      // newest on the present path
  std::optional<Checkpoint> own_checkpoint{};  // newest without any partner's influence
  std::vector<Evaluation> evaluations{};       // of the present path, by step
  std::vector<LossPoint> losses{};
  std::vector<Probe> probes{};
  std::vector<Transfer> transfers{};
  std::set<JobId> barred{};  // split from these: never paired again
  Time last_progress{};      // for ageing: submission, or the last moment it ran
  Time waiting_since{};      // submission, or the end of its newest run
  Seconds waited{}, busy{};  // busy: slot-seconds
  int faults = 0;            // its own crashes
  int lost_in_a_row = 0;     // runs lost since it last made progress
  Time lost_at{};            // the newest of them
  int starts = 0;            // of training runs, not profiles
  PlaceId last_place{};      // where its newest run was: a warm worker may wait there
  std::vector<int> last_slots{};
  std::string waiting_for{};  // from the newest plan
  std::optional<JobFinished> result{};

  bool ended() const { return state >= JobState::kSucceeded; }
  bool active() const { return !ended() && !held && state >= JobState::kQueued; }
  // Progress beyond its profile: decides whether it may still start from a source.
  bool has_progress() const { return steps_done > profile_steps; }
  // The merge that the present path comes from and that was not taken back; null when none.
  const Transfer* merge() const;
  // What others may learn from: the exported adapter of a success, else the best one so far.
  std::string adapter() const;
  std::string adapter_hash() const;
};

struct PlaceView {
  PlaceId place{};
  std::string node{};
  std::string hardware{};
  int num_slots = 0;
  int node_slots = 0;  // of PlaceReady
  IdSet<int> taken{};  // by runs, from RunRequested until they ended
};

struct Snapshot {
  std::uint64_t seq = 0;  // of the newest event applied
  Time now{};
  std::uint64_t era = 0, next_run = 1, round = 0;
  Seconds round_length{120};
  IdMap<JobId, JobView> jobs{};
  IdSet<JobId> open{};           // those that have not ended; kept by apply()
  IdMap<RunId, RunView> runs{};  // active ones
  IdMap<PlaceId, PlaceView> places{};
  std::optional<PlanAdopted> wish{};  // what the last round wanted

  // Aborts on an event that allows() refuses: the log would lie.
  void apply(const Event& event);
  // The same question for input from outside, asked before the event is appended.
  Result<> allows(const EventBody& body) const;

  // What the wish wants to run at this moment, in the order of the plan: ended and held jobs left
  // out, a temporal pair reduced to the source while that has not finished, a pair that was split
  // or whose partner is gone reduced to normal mode.
  std::vector<Assignment> due() const;

  // Jobs that a round may plan for, by id. Ended jobs, which only grow in number, cost nothing.
  std::vector<const JobView*> active_jobs() const;

  int num_gpus() const;  // slots of all places
  int free_gpus() const;
  RunId new_run() const;  // the id that the next RunRequested must carry
};

std::string to_string(JobState state);
// In the order of the enumeration.
std::vector<std::string> job_state_names();
int rank_of(const JobView& job);  // of its state: 0 submitted .. 6 ended

}  // namespace ymir
