// RunRecord: what one policy did with one workload, whichever simulator it ran in: the common form
// behind metrics, invariants, tables and the report. Instants of GPUs are whole microseconds, so
// that GPU time adds up exactly; times of jobs are seconds as the simulator computed them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ymir/core/event.h"
#include "ymir/core/snapshot.h"
#include "ymir/sim/artifact/artifact.h"
#include "ymir/sim/workload.h"

namespace ymir {

using Micro = std::int64_t;  // microseconds of simulated time

struct JobRecord {
  std::string name{}, backbone{}, dataset{};
  double submission_s = 0;
  std::optional<double> first_start_s{}, completion_s{};  // completion: finished or given up
  bool finished = false;                                  // reached its target; else censored
  double queueing_s = 0, first_wait_s = 0;                // without GPUs; of it, before the first
  double gpu_seconds = 0;
  int restarts = 0;
  int requested_gpus = 0, last_gpus = 0;
  std::string mode{};  // of its newest run; empty: it never ran
  std::string partner{};
  std::optional<double> predicted_gain{}, actual_gain{};
  bool merged = false, rolled_back = false;
  double extra_jct_s = 0;        // lost by pairings that were taken back
  std::string waited_because{};  // the commonest reason of the rounds in which it waited

  double jct_s() const;  // NaN when not finished
};

// One run on its GPUs, from its request to its end.
struct Hold {
  Micro from = 0, ready = 0, to = 0;  // [from, ready) the switch, [ready, to) training
  Micro redone = 0;                   // at its end: work that was lost and done again
  std::vector<int> jobs{};            // indices
  std::vector<int> gpus{};            // GPU k lies on node k / gpus_per_node
  Mode mode = Mode::kNormal;
  int partner = -1;
  bool profile = false;
  double predicted_gain = 0;
  std::string why_ended{};
};

struct Merge {
  int job = 0, partner = 0;
  Mode mode = Mode::kTemporal;
  Micro decided = 0, from = 0;
  std::optional<Micro> split{};
  int gpus = 0;
  double transfer_weight = 1;  // believed
  double predicted_gain = 0;
  std::optional<double> actual_gain{};  // measured at its end, not censored
  double extra_s = 0;
  std::string verdict{};  // open kept split
  std::string why{};
};

struct RoundRecord {
  std::uint64_t round = 0;
  double at_s = 0;
  int active = 0, wanted = 0, changes = 0;
  std::int64_t value = 0, bound = 0;
  std::string proof{};
};

struct RunRecord {
  std::string policy{}, trace{};
  std::uint64_t seed = 0;
  int nodes = 0, gpus_per_node = 0;
  bool public_simulator = false;
  std::vector<JobRecord> jobs{};  // in the order of submission
  std::vector<Hold> holds{};      // by start, then by job
  std::vector<Merge> merges{};    // by decision
  std::vector<RoundRecord> rounds{};
  std::vector<double> solve_ms{};  // measured
  double profile_wait_s = 0;
  std::vector<std::string> faults{};  // found while the record was made: they break check_run
  std::vector<std::string> notes{};   // look-ups in no table, assumptions

  int num_gpus() const { return nodes * gpus_per_node; }
  // First submission to the last end of a job or a run.
  Micro begin() const, end() const;
};

Micro to_micro(double seconds);

// Of a log of the controller, and the state it folds to. `workload` names the jobs: JobId i is its
// job i - 1. A run that has not ended at the log's end is a fault, unless the log `goes_on`: then
// it is counted up to the newest event.
RunRecord record_of(const std::vector<Event>& log, const Snapshot& state, const Workload& workload,
                    bool goes_on = false);
// The same of a log that nobody keeps: shown event by event as it grows.
class LogRecord {
 public:
  LogRecord();
  ~LogRecord();
  LogRecord(const LogRecord&) = delete;
  LogRecord& operator=(const LogRecord&) = delete;

  void see(const Event& event);
  // At the end of the log, once.
  RunRecord end(const Snapshot& state, const Workload& workload, bool goes_on = false);

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

// Of a public simulator. Jobs are sorted by submission.
RunRecord record_of(const artifact::Run& run, const Trace& trace, int nodes, int gpus_per_node);

}  // namespace ymir
