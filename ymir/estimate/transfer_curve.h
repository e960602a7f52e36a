// MergedBelief: what is believed of a job that has learnt from a partner: its speed-up rho and the
// steps it still needs, from the belief before the run and the evaluations seen since.
//
// The curve of the merged run is the job's own curve with time stretched, error(rho k): draws of
// (rho, own curve) are weighed by the likelihood of the evaluations (estimator.md 5 T2, and 8). So
// being ahead of the level that the job would have alone, and staying ahead, is what raises the
// belief. Pure, any thread.
#pragma once

#include <vector>

#include "ymir/base/interval.h"
#include "ymir/estimate/draws.h"
#include "ymir/estimate/solo_curve.h"

namespace ymir {

class MergedBelief {
 public:
  // `points`: of the merged run, steps counted from its beginning. `prior`: of rho. A target is
  // noticed every `between_evaluations` steps, and the job ends at `last_step` at the latest.
  MergedBelief(const SoloBelief& solo, const Interval& prior, const std::vector<ErrorPoint>& points,
               double between_evaluations, double last_step);

  Interval speedup() const;
  // P(going on from `step` of the merged run ends sooner than going back to `own_step` alone). At
  // step 0: P(the partner makes it sooner than alone).
  double helps(double step, double own_step) const;
  // P(speed-up > least).
  double exceeds(double least) const;
  // Steps from the beginning of the merged run to the end, as draws.
  Draws steps() const;
  // Expected (steps left if it goes on - steps left if it goes back to `own_step`).
  double lost_by_going_on(double step, double own_step) const;

 private:
  struct Weighted {
    double speedup = 1, weight = 0;
    double alone = 1, with = 1;  // steps to the end
  };
  std::vector<Weighted> worlds_{};
};

}  // namespace ymir
