// LrSchedule: the learning rate as a closed form of k = updates already made, as in transformers:
// warm-up by k / W (the first update has rate 0 when W > 0), then constant, linear or cosine to 0
// at T. No state: a resumed job reads the same values. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "ymir/base/result.h"
#include "ymir/core/job.h"

namespace ymir {

struct LrSchedule {
  enum class Kind { kConstant, kLinear, kCosine };
  Kind kind = Kind::kLinear;
  double base = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  double at(std::int64_t updates_made) const;
};

// A warm-up below 1 is a fraction of all steps, rounded up.
Result<LrSchedule> make_schedule(const TrainSpec& train, std::int64_t total_steps);

}  // namespace ymir
