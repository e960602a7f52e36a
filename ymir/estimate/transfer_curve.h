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
  // `points`: of the merged run, steps counted from its beginning. `prior`: of rho.
  MergedBelief(const SoloBelief& solo, const Interval& prior,
               const std::vector<ErrorPoint>& points);

  Interval speedup() const;
  // P(steps with the partner < steps alone), when alone the job would go on from `own_step`.
  double helps(double own_step) const;
  // P(speed-up > least).
  double exceeds(double least) const;
  // Steps from the beginning of the merged run to the target, as draws.
  Draws steps() const;
  // Expected (steps left if it goes on - steps left if it goes back to `own_step`), both ending at
  // `last_step` at the latest.
  double lost_by_going_on(double step, double own_step, double last_step) const;

 private:
  struct Weighted {
    double speedup = 1, alone = 1, weight = 0;
    double with() const { return alone / speedup; }
  };
  std::vector<Weighted> worlds_{};
};

}  // namespace ymir
