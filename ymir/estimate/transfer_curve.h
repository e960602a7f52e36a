// MergedBelief: what is believed of a job that has learnt from a partner: its speed-up rho and the
// steps it still needs, from the belief before the run and the evaluations seen since.
//
// The curve of the merged run is the job's own curve, begun at some point of it (the head start
// that the source gives) and gone through at another pace, which may fade: of what leads early,
// much is slower later than the job would have been alone (measured: without the fade the steps
// left at two epochs were believed 2.5 times too few). For each draw of the own curve, (rho, head
// start, fade) are weighed by the likelihood of the evaluations; the draws keep their weights. So
// the run is judged against the job's own expectation: a run that is lifted at once and then stands
// still is not taken as news of a hard task, but as what it mostly is, a source that holds the job
// back. Pure, any thread.
#pragma once

#include <span>
#include <vector>

#include "ymir/base/interval.h"
#include "ymir/estimate/draws.h"
#include "ymir/estimate/solo_curve.h"

namespace ymir {

class MergedBelief {
 public:
  // `points`: of the merged run, steps counted from its beginning. `prior`: of rho. A target is
  // noticed every `between_evaluations` steps, after the last point at the soonest, and the job
  // ends at `last_step` at the latest.
  MergedBelief(const SoloBelief& solo, const Interval& prior, const std::vector<ErrorPoint>& points,
               double between_evaluations, double last_step);

  Interval speedup() const;
  // P(going on from `step` of the merged run ends sooner than going back to `own_step` alone). At
  // step 0: P(the partner makes it sooner than alone).
  double helps(double step, double own_step) const;
  // P(speed-up > least).
  double exceeds(double least) const;
  // P(the merged run, a step of which costs `cost` of one alone, ends later than going on alone
  // from `own_step` at its beginning would have, by more than `share` of the steps alone and by
  // more than `floor` steps).
  double late(double own_step, double cost, double share, double floor) const;
  // Steps from the beginning of the merged run to the end, as draws.
  Draws steps() const;
  // Expected (steps left if it goes on - steps left if it goes back to `own_step`).
  double lost_by_going_on(double step, double own_step) const;

 private:
  struct Weighted {
    double speedup = 1, weight = 0;
    double alone = 1, with = 1;  // steps to the end
  };
  static void weigh_equally(std::span<Weighted> worlds, double best);
  std::vector<Weighted> worlds_{};
};

}  // namespace ymir
