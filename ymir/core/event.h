// Event: all that ever happens. Appended to one log, in one order; state is a fold over it
// (core/snapshot.h) and changes in no other way.
//
// A kind's body only gains fields with defaults; else its version in core/codec.cc rises and an
// upcaster is added. To add a kind: a struct here, a line in EventBody, a line in codec.cc, a case
// in snapshot.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "ymir/base/boxed.h"
#include "ymir/core/order.h"
#include "ymir/core/plan.h"
#include "ymir/core/profile.h"

namespace ymir {

// --- service and places ---
struct DaemonStarted {
  std::string version{};
  std::uint64_t era = 0;
  Seconds round{120};
  std::string policy{};
};
struct PlaceReady {
  PlaceId place{};
  std::string node{};
  int num_slots = 0;
  std::string hardware{};
  // Slots of each node, when the place is several alike nodes that one run may span: slot s lies on
  // node s / node_slots. 0: the place is one node.
  int node_slots = 0;
};
struct PlaceLost {
  PlaceId place{};
  std::string why{};
};

// --- jobs ---
struct JobSubmitted {
  JobId job{};
  Boxed<JobSpec> spec{};  // it would be four fifths of every event
};
struct DataCheckStarted {
  JobId job{};
};
struct DataChecked {
  JobId job{};
  DataFacts facts{};
};
struct DataRefused {
  JobId job{};
  std::vector<std::string> faults{};  // file:line:column: text
};
struct JobHeld {
  JobId job{};
};
struct JobReleased {
  JobId job{};
};
enum class Outcome { kSucceeded, kFailed, kCancelled };
struct JobFinished {
  JobId job{};
  Outcome outcome = Outcome::kSucceeded;
  std::string reason{};  // target plateau patience budget deadline cancelled failed
  std::string code{};    // of a failure: invalid_data, diverged, ...
  std::string text{};
  RunId run{};  // the run in which it ended, 0 when none
  bool target_reached = false;
  std::int64_t step = 0;
  std::map<std::string, double> metrics{};
  std::string adapter{};       // folder of the exported adapter
  std::string adapter_hash{};  // sha256 of adapter_model.safetensors
};

// --- profile and belief ---
struct ProfileFinished {
  JobId job{};
  RunId run{};
  Profile profile{};
};
struct ProfileFailed {
  JobId job{};
  RunId run{};
  std::string why{};
};
struct StepTimed {
  JobId job{};
  RunId run{};
  StepTiming timing{};
};
struct TransferSettled {
  JobId job{};
  JobId partner{};
  Mode mode = Mode::kTemporal;
  double strength = 1;
  double similarity = 0;
  Interval predicted{};    // speed-up
  double actual = 0;       // speed-up, against the baseline
  Interval range{};        // of `actual`, as wide as the baseline is uncertain; 0: not known
  bool censored = false;   // actual is only an upper bound (split or never reached)
  std::string baseline{};  // measured predicted
  bool kept = true;        // false: it was split
  Seconds extra{};         // time lost by a wrong pairing
};

// --- rounds ---
struct PlanAdopted {
  std::uint64_t round = 0;
  std::uint64_t based_on = 0;  // seq of the newest event the round saw
  Plan plan{};
  std::map<std::string, double> pass_ms{};  // measured; not part of any decision
  // Taken out at adoption: a job of it changed while the round was computed.
  std::vector<Assignment> dropped{};
};
struct RoundSkipped {
  std::uint64_t round = 0;
  std::string why{};
};

// --- runs ---
struct RunRequested {
  RunId run{};
  Assignment what{};
  std::vector<JobId> jobs{};  // that train in it: one, or two when spatial
  bool profile = false;
  PlaceId place{};
  std::vector<int> slots{};
  std::vector<std::int64_t> from_steps{};  // of each job
};
enum class StartKind { kCold, kWarm, kSwap };
struct RunStarted {
  RunId run{};
  StartKind how = StartKind::kCold;
  double milliseconds = 0;  // from order to the first step's begin
};
struct EpochEvaluated {
  JobId job{};
  RunId run{};
  Evaluation evaluation{};
  std::vector<LossPoint> losses{};  // since the last evaluation
};
struct CheckpointCommitted {
  JobId job{};
  RunId run{};
  std::int64_t step = 0;
  std::string path{};
  std::string hash{};     // of its state.json, which names the hash of the tensors
  std::string adapter{};  // PEFT folder of the best adapter so far; may be empty
  std::string adapter_hash{};
};
struct RunKept {
  RunId run{};
  JobId job{};
  double helps = 0;
  std::string why{};
};
struct RunSplit {
  RunId run{};
  JobId job{};  // whose outlook failed
  JobId partner{};
  double helps = 0;
  bool restart = false;  // go on from the checkpoint of before the merge
  std::string why{};
};
struct RunStopped {
  RunId run{};
  std::string why{};  // round split partner_finished paused cancelled profile_done
  std::vector<JobId> jobs{};
  std::vector<std::int64_t> steps{};  // reached by each; its CheckpointCommitted comes before
  Seconds busy{};                     // from RunStarted to the end
};
struct RunLost {
  RunId run{};
  std::string why{};   // worker_died place_lost start_failed
  bool fault = false;  // the job's own fault: counted against it
};

// --- flows: who learns from whom, written before a byte is read ---
struct FlowAuthorised {
  RunId run{};
  JobId from{};
  JobId to{};
  std::string kind{};  // temporal_start spatial_shared probe vector
  std::string hash{};  // of what is read
};

using EventBody =
    std::variant<DaemonStarted, PlaceReady, PlaceLost, JobSubmitted, DataCheckStarted, DataChecked,
                 DataRefused, JobHeld, JobReleased, JobFinished, ProfileFinished, ProfileFailed,
                 StepTimed, TransferSettled, PlanAdopted, RoundSkipped, RunRequested, RunStarted,
                 EpochEvaluated, CheckpointCommitted, RunKept, RunSplit, RunStopped, RunLost,
                 FlowAuthorised>;

struct Event {
  std::uint64_t seq = 0;  // from 1, no gaps; 0 = not appended yet
  Time at{};
  std::string actor{};  // user, agent or "controller"
  EventBody body{};
};

// The jobs that an event is about (of a plan: those of its assignments), and the run; 0 when none.
std::vector<JobId> jobs_of(const EventBody& body);
RunId run_of(const EventBody& body);

// Progress between events, for people: never logged, newest wins.
struct StepReport {
  JobId job{};
  RunId run{};
  std::int64_t step = 0, total_steps = 0;
  double loss = 0, lr = 0;
  std::int64_t tokens = 0;
  double seconds = 0;  // of this step
};

}  // namespace ymir
