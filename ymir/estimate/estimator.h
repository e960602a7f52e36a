// Estimator: turns measurements into a Forecast: for each candidate (job or pair, mode, GPUs) how
// long until each member meets its own target, with what certainty, and why.
//
// Five links, each in its own file and replaceable: similarity, gain, convergence (steps), step
// time, memory. No I/O, no clock, no torch. State is a fold over events; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/core/forecast.h"
#include "ymir/core/snapshot.h"
#include "ymir/estimate/estimator_options.h"
#include "ymir/estimate/knowledge.h"
#include "ymir/estimate/known_links.h"

namespace ymir {

class Estimator {
 public:
  // `hints`: of estimators that see the same jobs, as the runs of one simulation do.
  static Result<Estimator> create(
      EstimatorOptions options, std::shared_ptr<CurveHints> hints = std::make_shared<CurveHints>());

  // From now on these links are what is given, not what is estimated.
  void know(KnownLinks links) { known_ = std::move(links); }

  // The only way to learn. Called for each event, after it was applied to `after`.
  void observe(const Event& event, const Snapshot& after);

  // Pure: same events, same bytes. A job in state queued or later always has a normal candidate at
  // each allowed size, profiled or not; ended and held jobs have none.
  Forecast forecast(const Snapshot& now) const;
  // The outlooks of that forecast alone.
  std::vector<TransferOutlook> outlooks(const Snapshot& now) const;

  // The transfers that ended (reached the target, split, or censored) and have no TransferSettled
  // in the log yet: the controller appends them, and observe() learns from the event.
  std::vector<TransferSettled> settle(const Snapshot& now) const;

  // Sources worth probing for `target` (most promising first, at most max_probe_sources), with the
  // strength to probe at: those with an adapter that no probe of the target covers yet.
  struct ProbeWish {
    JobId source{};
    double strength = 0.5;
  };
  std::vector<ProbeWish> probes_wanted(const Snapshot& now, JobId target) const;

 private:
  Estimator(EstimatorOptions options, std::shared_ptr<CurveHints> hints);
  EstimatorOptions options_{};
  Knowledge knowledge_;
  KnownLinks known_{};
};

}  // namespace ymir
