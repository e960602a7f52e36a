// How long this run's steps took, under everything that changes it.
#include <algorithm>
#include <cmath>

#include "ymir/base/machine.h"
#include "ymir/tune/trainer/job_run_torch.h"

namespace ymir {
namespace {

constexpr std::size_t kFirstDropped = 2;  // steps after a start: memory and caches settle
constexpr std::size_t kFewest = 5;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::optional<StepTiming> step_timing(const JobRun& job, const RunContext& context) {
  if (job.step_seconds.size() < kFirstDropped + kFewest) return std::nullopt;
  const std::vector<double> seconds(job.step_seconds.begin() + kFirstDropped,
                                    job.step_seconds.end());
  static const std::string kCpu = cpu().model;
  const JobSpec& spec = job.order.spec;
  StepTiming timing;
  timing.key.backbone = context.backbone.files.key;
  timing.key.method = method_name(spec.method);
  timing.key.hardware = kCpu;
  timing.key.precision = spec.train.precision;
  timing.key.joint = context.mode == Mode::kSpatial;
  timing.key.gpus = 1;
  timing.key.batch = spec.train.batch;
  timing.key.tokens_per_row = static_cast<int>(std::ceil(job.data->mean_tokens / 8) * 8);
  timing.num_steps = static_cast<std::int64_t>(seconds.size());
  timing.median = Seconds(median(seconds));
  std::vector<double> spread;
  for (const double value : seconds) spread.push_back(std::abs(value - timing.median.count()));
  timing.mad = Seconds(median(spread));
  return timing;
}

}  // namespace ymir
