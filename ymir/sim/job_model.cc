#include "ymir/sim/job_model.h"

#include <algorithm>

#include "ymir/base/result.h"

namespace ymir {

namespace {

// Metric over progress: p (1 + c) / (p + c) is 0 at 0, 1 at 1, and levels off at 1 + c. Left of 0
// it goes on straight, with the slope it has at 0.
constexpr double kBend = 0.3;

double shape(double progress) {
  if (progress < 0) return progress * (1 + kBend) / kBend;
  return progress * (1 + kBend) / (progress + kBend);
}

double inverse_shape(double height) {
  if (height < 0) return height * kBend / (1 + kBend);
  return kBend * height / std::max(1 + kBend - height, 1e-9);
}

}  // namespace

void JobModel::set_spatial(JobId first, JobId second, SpatialTruth truth) {
  YMIR_CHECK(first < second, "a spatial pair names the smaller id first");
  spatial_[{first, second}] = truth;
}

double JobModel::temporal_gain(JobId source, JobId target) const {
  const auto found = temporal_.find({source, target});
  return found == temporal_.end() ? 0 : found->second;
}

double JobModel::head_start(JobId source, JobId target) const {
  const double gain = temporal_gain(source, target);
  return gain / (1 + gain);
}

SpatialTruth JobModel::spatial(JobId first, JobId second) const {
  const auto found = spatial_.find({first, second});
  return found == spatial_.end() ? SpatialTruth{} : found->second;
}

Seconds JobModel::step_time(JobId job, int gpus) const {
  const JobTruth& truth = jobs_.at(job);
  double speed = 1;
  int reached = 1;
  for (; reached * 2 <= gpus; reached *= 2) speed *= 2 * truth.scaling;
  // Between two powers of two the speed is linear.
  const double next = speed * 2 * truth.scaling;
  speed += (next - speed) * (gpus - reached) / reached;
  return truth.step_time / speed;
}

Seconds JobModel::joint_step_time(JobId first, JobId second, int gpus) const {
  return std::max(step_time(first, gpus), step_time(second, gpus)) * spatial(first, second).joint;
}

double JobModel::metric(JobId job, double progress) const {
  const JobTruth& truth = jobs_.at(job);
  return truth.start_metric + (truth.target_metric - truth.start_metric) * shape(progress);
}

double JobModel::progress_at(JobId job, double metric) const {
  const JobTruth& truth = jobs_.at(job);
  return inverse_shape((metric - truth.start_metric) / (truth.target_metric - truth.start_metric));
}

double JobModel::loss(JobId, double progress) const {
  return 0.1 + 0.9 / (1 + 3 * std::max(progress, -0.2));
}

}  // namespace ymir
