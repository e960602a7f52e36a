// The arithmetic of a pair's forecast: times of its members, TranWt, work ratio,
// expected saving. All in seconds, over draws. Pure, any thread.
#pragma once

#include "ymir/estimate/draws.h"

namespace ymir {

// One draw. `alone`: seconds to target in normal mode on the same GPUs, from now.
//
// Sum of the two completion times one after the other, the shorter first (preemptive SRTF) ...
double alone_sum(double first, double second);
// ... over that in the mode. Temporal with a source still to run: it ends at `source`, then the
// target needs `target_after`. With a finished source only the target counts.
double temporal_weight(double source, double target_alone, double target_after);
double finished_source_weight(double target_alone, double target_with);
// Spatial: when both meet their targets at `first` and `second`.
double spatial_weight(double first_alone, double second_alone, double first, double second);

// A joint run: `first_steps` <= `second_steps` joint steps of `joint` seconds until each meets its
// target; the first to finish leaves, the other goes on alone at `single` seconds after `change`.
struct SpatialTimes {
  double first = 0, second = 0;
};
SpatialTimes spatial_times(double first_steps, double second_steps, double joint, double single,
                           double start, double change);

// Seconds saved against alone; a loss is cut where the stop-loss finds it (with `detection`
// probability) after `judged` seconds.
double saving(double alone, double with, double judged, double detection);

}  // namespace ymir
