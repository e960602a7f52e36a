#include "ymir/estimate/weigh.h"

#include <algorithm>

namespace ymir {

double alone_sum(double first, double second) {
  return 2 * std::min(first, second) + std::max(first, second);
}

double temporal_weight(double source, double target_alone, double target_after) {
  return alone_sum(source, target_alone) / (2 * source + target_after);
}

double finished_source_weight(double target_alone, double target_with) {
  return target_alone / target_with;
}

double spatial_weight(double first_alone, double second_alone, double first, double second) {
  return alone_sum(first_alone, second_alone) / (first + second);
}

SpatialTimes spatial_times(double first_steps, double second_steps, double joint, double single,
                           double start, double change) {
  const double first = start + first_steps * joint;
  return {first, first + change + (second_steps - first_steps) * single};
}

double saving(double alone, double with, double judged, double detection) {
  const double saved = alone - with;
  if (saved >= 0) return saved;
  return detection * std::max(saved, -judged) + (1 - detection) * saved;
}

}  // namespace ymir
