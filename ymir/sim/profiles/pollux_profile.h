// The measured applications of the Pollux study (six models on 16 x 4 T4 GPUs): how long a step
// takes on a placement, how much progress a batch makes, how far each epoch goes. A folder holds,
// for each application, placements.csv, scalability.csv and validation-BATCH.csv.
//
// A placement is the number of GPUs on each node in order, {4, 2}: 4 on one node, 2 on the next.
// Placements of up to 4 nodes were measured one by one; beyond them only (nodes, GPUs) was, and a
// value between two such measurements depends on who triangulates the grid. A file of look-ups
// (app, placement_id, local_bsz, method, step_time, sync_time) therefore goes before, and every
// value says where it comes from.
//
// Readers are bounded and name file:line. Immutable after reading: any thread. Seconds, samples.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/sim/profiles/placement.h"
#include "ymir/sim/profiles/scattered.h"

namespace ymir {

// One validated batch size: a row an epoch, from epoch 0.
struct PolluxCurve {
  int batch = 0;
  // progress: iterations at the smallest batch that the epoch's end is worth; never falls.
  std::vector<double> progress{}, iteration{}, metric{}, grad_sqr{}, grad_var{};
};

struct PolluxStepTime {
  enum class Source {
    kLookUp,    // the file of look-ups
    kMeasured,  // placements.csv, linear in the local batch
    kSameSize,  // a look-up of another placement with as many nodes and GPUs: the same query
    kScattered  // own triangulation of (nodes, GPUs, local batch)
  };
  double step_s = 0;  // one step without accumulation
  double sync_s = 0;  // of it, the exchange of gradients
  Source source = Source::kMeasured;
  bool unique = true;  // false: several triangulations are possible, and differ
};

struct PolluxGradStats {
  double sqr = 0, var = 0;  // at the smallest batch: signal and noise of the gradient
};

// How a total batch is cut: every GPU does accumulation + 1 passes of `atomic` samples a step.
struct PolluxSplit {
  int atomic = 0, accumulation = 0;
  int total(int replicas) const { return replicas * atomic * (accumulation + 1); }
};
// A single GPU cannot tell the gradient's noise without accumulating: when it must.
enum class PolluxAlone { kNever, kAboveInitialBatch, kAlways };

class PolluxApplication {
 public:
  std::string name{};
  int init_batch = 0, max_batch = 0;  // smallest and largest validated
  int min_local = 0, max_local = 0;   // samples that one pass on one GPU may take
  int max_epochs = 0;                 // rows of the shortest curve
  std::vector<PolluxCurve> curves{};  // ascending batch

  // A job is complete when it has ended this epoch (counted from 0).
  int last_epoch() const { return max_epochs - 1; }
  // Progress at which the first `epochs` epochs are over; 0 <= epochs <= max_epochs.
  double progress_after(int epochs) const {
    return progress_after_[static_cast<std::size_t>(epochs)];
  }
  // Linear between the nearest validated batches; init_batch <= batch <= max_batch, 0 <= epoch <
  // max_epochs.
  double iterations(double batch, int epoch) const;
  PolluxGradStats grad_stats(double batch, int epoch) const;
  // Progress of one step of `total` samples, in steps at the smallest batch: in (0, total / init].
  static double gain(const PolluxGradStats& stats, double scale);

  PolluxSplit split(int batch, int replicas, PolluxAlone alone) const;
  // kNotFound names the look-up when no table reaches it: it is not extrapolated.
  Result<PolluxStepTime> step_time(std::span<const int> placement, int local_batch) const;
  // Seconds of one optimiser step, accumulation included.
  static double step_seconds(const PolluxStepTime& time, const PolluxSplit& split) {
    return time.step_s + (time.step_s - time.sync_s) * split.accumulation;
  }

 private:
  friend class PolluxReader;
  struct Sample {
    int local_batch = 0;
    double step_s = 0, sync_s = 0;
  };
  struct Size {  // what the grid knows of a placement
    int nodes = 0, gpus = 0, local_batch = 0;
    auto operator<=>(const Size&) const = default;
  };
  template <class Value>
  double between(double batch, int epoch, Value value) const;

  std::vector<double> progress_after_{};
  std::map<std::uint64_t, std::vector<Sample>> placements_{};  // ascending local batch
  std::map<std::pair<std::uint64_t, int>, Sample> look_ups_{};
  std::map<Size, Sample> same_size_{};
  ScatteredTable grid_{};  // (nodes, GPUs, local batch) -> step, sync
};

struct PolluxProfile {
  std::vector<PolluxApplication> applications{};  // by name
  std::string look_ups{};                         // the file that was used; empty: none

  const PolluxApplication* find(std::string_view name) const;
};

// `look_ups`: a file, or empty: throughput_queries.csv in `folder` or in ../../golden/pollux, if
// any.
Result<PolluxProfile> read_pollux_profile(const std::string& folder,
                                          const std::string& look_ups = "");

// The digits of the lexicographically smallest rotation, as a number: {4, 2} is 24. 0 when it
// cannot be written so: a node with more than 9 GPUs, more than 19 nodes, no node.
std::uint64_t pollux_placement_id(std::span<const int> placement);

}  // namespace ymir
