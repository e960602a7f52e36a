#include "ymir/tune/trainer/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ymir {

double LrSchedule::at(std::int64_t k) const {
  const auto done = static_cast<double>(k), warm = static_cast<double>(warmup_steps),
             total = static_cast<double>(total_steps);
  if (k < warmup_steps) return base * done / std::max(1.0, warm);
  if (kind == Kind::kConstant) return base;
  const double span = std::max(1.0, total - warm);
  if (kind == Kind::kLinear) return base * std::max(0.0, (total - done) / span);
  const double progress = std::min(1.0, (done - warm) / span);
  return base * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

Result<LrSchedule> make_schedule(const TrainSpec& train, std::int64_t total_steps) {
  LrSchedule schedule;
  if (train.schedule == "constant") {
    schedule.kind = LrSchedule::Kind::kConstant;
  } else if (train.schedule == "linear") {
    schedule.kind = LrSchedule::Kind::kLinear;
  } else if (train.schedule == "cosine") {
    schedule.kind = LrSchedule::Kind::kCosine;
  } else {
    return Error{ErrorCode::kInvalidArgument,
                 "schedule is not one of linear, cosine, constant: " + train.schedule};
  }
  schedule.base = train.lr;
  schedule.total_steps = std::max<std::int64_t>(1, total_steps);
  const double warm = train.warmup < 1
                          ? std::ceil(train.warmup * static_cast<double>(schedule.total_steps))
                          : train.warmup;
  schedule.warmup_steps = static_cast<std::int64_t>(warm);
  return schedule;
}

}  // namespace ymir
