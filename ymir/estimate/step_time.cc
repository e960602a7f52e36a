#include "ymir/estimate/step_time.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ymir/base/text.h"
#include "ymir/estimate/draws.h"

namespace ymir {
namespace {

constexpr std::int64_t kEnoughSteps = 20;
constexpr double kMaxWeight = 200;
// Of ln step time, where nothing better is known.
constexpr double kLeastSpread = 0.03, kFewStepsSpread = 0.15, kOtherShapeSpread = 0.3,
                 kOtherMethodSpread = 0.5, kOtherHardwareSpread = 0.9, kUnknownSpread = 1.5;
constexpr double kUnknownSeconds = 0.3;

double log_work(const StepKey& key) {
  return std::log(std::max(1.0, static_cast<double>(key.batch) * std::max(1, key.tokens_per_row)));
}

// Seconds relative to one GPU: 0.8 of each doubling is kept until measured.
double log_slowdown_of(int gpus) { return -0.8 * std::log(std::max(1, gpus)); }

// The key without what interpolation may vary.
StepKey without_shape(StepKey key) {
  key.batch = 0;
  key.tokens_per_row = 0;
  return key;
}

Link link(double log_seconds, double spread, Source source, std::int64_t rows) {
  return {log_normal(log_seconds, std::max(spread, kLeastSpread)), source, rows};
}

}  // namespace

std::string to_string(Source source) {
  constexpr std::array<const char*, 6> kNames{"exact", "measured", "interpolated",
                                              "model", "fallback", "prior"};
  return kNames[static_cast<std::size_t>(source)];
}

void StepTable::add(JobId job, const StepTiming& timing) {
  const double seconds = timing.median.count();
  if (timing.num_steps < 1 || !(seconds > 0) || !std::isfinite(seconds)) return;
  if (job) keys_[job] = timing.key;
  Cell& cell = cells_[timing.key];
  const double weight = static_cast<double>(std::min<std::int64_t>(timing.num_steps, 100));
  const double x = std::log(seconds), total = cell.weight + weight;
  const double own = timing.mad.count() > 0 ? 1.4826 * timing.mad.count() / seconds : 0;
  const double between = cell.weight > 0 ? std::abs(x - cell.log_mean) : 0;
  cell.spread += (std::max(own, between) - cell.spread) * weight / total;
  cell.log_mean += (x - cell.log_mean) * weight / total;
  cell.weight = std::min(total, kMaxWeight);
  cell.steps += timing.num_steps;
}

const StepKey* StepTable::key_of(JobId job) const {
  const auto found = keys_.find(job);
  return found == keys_.end() ? nullptr : &found->second;
}

Link StepTable::predict(const StepKey& key) const {
  if (const auto found = cells_.find(key); found != cells_.end()) {
    const Cell& cell = found->second;
    const double few = cell.steps < kEnoughSteps ? kFewStepsSpread : 0;
    // The median of n steps is known better than one step, but load on the machine changes.
    return link(cell.log_mean, std::max(few, cell.spread / 2), Source::kMeasured, cell.steps);
  }
  const Link between = interpolate(key);
  return between.source == Source::kInterpolated ? between : scale_from_others(key);
}

Link StepTable::interpolate(const StepKey& key) const {
  const double work = log_work(key);
  const Cell *below = nullptr, *above = nullptr;
  double below_work = 0, above_work = 0;
  for (const auto& [other, cell] : cells_) {
    if (without_shape(other) != without_shape(key)) continue;
    const double at = log_work(other);
    if (at <= work && (!below || at > below_work)) below = &cell, below_work = at;
    if (at >= work && (!above || at < above_work)) above = &cell, above_work = at;
  }
  if (!below || !above) return {};
  const double part =
      above_work > below_work ? (work - below_work) / (above_work - below_work) : 0.5;
  return link(below->log_mean + part * (above->log_mean - below->log_mean),
              std::max({0.1, below->spread / 2, above->spread / 2}), Source::kInterpolated,
              below->steps + above->steps);
}

// Work (batch x tokens) is proportional to time; a joint step costs what its two batches cost.
// The most similar keys count most.
Link StepTable::scale_from_others(const StepKey& key) const {
  double weights = 0, sum = 0, squares = 0, best_spread = kUnknownSpread;
  std::int64_t rows = 0;
  for (const auto& [other, cell] : cells_) {
    if (other.backbone != key.backbone) continue;
    double spread = kOtherShapeSpread;
    if (other.method != key.method || other.precision != key.precision) spread = kOtherMethodSpread;
    if (other.hardware != key.hardware) spread = kOtherHardwareSpread;
    if (other.gpus != key.gpus) spread += 0.15;
    const double distance = std::abs(log_work(key) - log_work(other));
    spread += 0.25 * distance;
    double x = cell.log_mean + log_work(key) - log_work(other) + log_slowdown_of(key.gpus) -
               log_slowdown_of(other.gpus);
    if (key.joint != other.joint) {
      x += key.joint ? std::log(2.0) : -std::log(2.0);
      spread += 0.1;
    }
    const double weight = 1 / (spread * spread);
    weights += weight;
    sum += weight * x;
    squares += weight * x * x;
    best_spread = std::min(best_spread, spread);
    rows += cell.steps;
  }
  if (weights <= 0) return link(std::log(kUnknownSeconds), kUnknownSpread, Source::kPrior, 0);
  const double mean = sum / weights;
  const double between = std::sqrt(std::max(0.0, squares / weights - mean * mean));
  const Source source = best_spread < kOtherHardwareSpread ? Source::kModel : Source::kFallback;
  return link(mean, std::max(best_spread, between), source, rows);
}

StepKey step_key(const JobSpec& spec, const DataFacts& facts, const std::string& hardware,
                 int gpus) {
  StepKey key;
  key.backbone = facts.backbone;
  key.method = method_name(spec.method);
  key.hardware = hardware;
  key.precision = spec.train.precision;
  key.gpus = gpus;
  key.batch = spec.train.batch;
  key.tokens_per_row = 8 * static_cast<int>(std::ceil(std::max(1.0, facts.mean_tokens) / 8));
  return key;
}

}  // namespace ymir
