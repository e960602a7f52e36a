// Knowledge: all that the estimator has learnt from the log, as a fold over events: step times,
// start-up costs, steps that classes of jobs need, gains of transfers that ended, and what
// exploration has cost. Values; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ymir/base/interval.h"
#include "ymir/base/result.h"
#include "ymir/core/snapshot.h"
#include "ymir/estimate/gain.h"
#include "ymir/estimate/solo_curve.h"
#include "ymir/estimate/step_time.h"

namespace ymir {

// The newest values of a quantity that drifts; its interval is theirs.
class Recent {
 public:
  explicit Recent(Interval prior) : prior_(prior) {}
  void add(double value);
  Interval interval() const;  // the prior's until three values are in

 private:
  Interval prior_;
  std::deque<double> values_{};
};

class Knowledge {
 public:
  // `hints` may be shared with others: it decides what is computed twice, never what is known.
  explicit Knowledge(std::shared_ptr<CurveHints> hints = std::make_shared<CurveHints>());
  void observe(const Event& event, const Snapshot& after);

  const StepTable& step_times() const { return step_times_; }
  const ClassPriors& classes() const { return classes_; }
  // How the job does alone. Only for jobs with a target.
  std::shared_ptr<const SoloBelief> alone(const JobView& job) const;
  const GainBook& gains(Mode mode) const { return mode == Mode::kSpatial ? spatial_ : temporal_; }
  // Seconds from the order to the first step.
  Interval switch_cost() const { return switch_seconds_.interval(); }
  // Wall time of a run relative to steps x step time: evaluation and saving.
  Interval overhead() const { return overhead_.interval(); }
  // Slot-seconds that exploring transfers have taken, the running ones with what they may take.
  double explored(const Snapshot& now) const;
  // Share of harmful transfers that the stop-loss splits.
  double detection_rate() const;

 private:
  struct OpenRun {
    RunRequested request{};
    Time started{};
    double start_seconds = 0;
    bool explores = false;
    double planned = 0;  // slot-seconds until the stop-loss has judged
  };
  void close(RunId run, double busy);
  void learn_overhead(const OpenRun& run, const RunStopped& stopped, const Snapshot& after);
  void learn_gain(const TransferSettled& settled, const Snapshot& after);
  void learn_class(const JobFinished& finished, const Snapshot& after);
  double planned_cost(const RunRequested& request, const Snapshot& after) const;

  StepTable step_times_{};
  ClassPriors classes_{};
  std::shared_ptr<CurveHints> hints_;
  GainBook temporal_, spatial_;
  Recent switch_seconds_, overhead_;
  std::map<RunId, OpenRun> open_{};
  // Of jobs that have not ended: hundreds of curves are weighed again only when what they are
  // weighed by has changed.
  struct Alone {
    SoloEvidence evidence{};
    std::shared_ptr<const SoloBelief> belief{};
  };
  mutable std::map<JobId, Alone> alone_{};
  double explored_ = 0;
  double harmful_ = 3, harmful_split_ = 2;  // pseudo-counts
};

// ln(steps that the job is believed to need alone / usual of its class).
double slowness_of(const JobView& job, const SoloBelief& alone, const ClassPriors& classes);
// The inputs of the gain model for a pair; `slowness`: of the target.
GainInput gain_input(const JobView& source, const JobView& target, double slowness,
                     double similarity, double strength);

// Slot-seconds so far, running runs included.
double slot_seconds(const Snapshot& now);

// The error points of the job's newest merge, and the evaluations behind them.
std::vector<ErrorPoint> merged_points(const JobView& job, const Transfer& transfer);

}  // namespace ymir
