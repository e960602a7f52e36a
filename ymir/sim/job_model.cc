#include "ymir/sim/job_model.h"

#include <algorithm>
#include <span>

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

// Time on `gpus` on that many nodes, from the rows of this GPU count.
double at_nodes(std::span<const StepTimes::Row> rows, int nodes) {
  if (nodes <= rows.front().nodes) return rows.front().seconds;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto &low = rows[i - 1], &high = rows[i];
    if (nodes <= high.nodes)
      return low.seconds +
             (high.seconds - low.seconds) * (nodes - low.nodes) / (high.nodes - low.nodes);
  }
  return rows.back().seconds;
}

double table_time(const std::vector<StepTimes::Row>& rows, int gpus, int nodes) {
  const auto of = [&](int count) {
    const auto found = std::ranges::equal_range(rows, count, {}, &StepTimes::Row::gpus);
    return std::span<const StepTimes::Row>(found.begin(), found.end());
  };
  const auto above = std::ranges::lower_bound(rows, gpus, {}, &StepTimes::Row::gpus);
  if (above == rows.end()) return at_nodes(of(rows.back().gpus), nodes);
  const double high = at_nodes(of(above->gpus), nodes);
  if (above->gpus == gpus) return high;
  // Below the smallest measured count the GPUs are shared out in time.
  if (above == rows.begin()) return high * above->gpus / gpus;
  const int low_gpus = std::prev(above)->gpus;
  const double low = at_nodes(of(low_gpus), nodes);
  const double speed =
      1 / low + (1 / high - 1 / low) * (gpus - low_gpus) / (above->gpus - low_gpus);
  return 1 / speed;
}

template <class T>
T& grow(std::vector<std::vector<T>>& matrix, int row, int column) {
  const auto i = static_cast<std::size_t>(row), j = static_cast<std::size_t>(column);
  if (matrix.size() <= i) matrix.resize(i + 1);
  if (matrix[i].size() <= j) matrix[i].resize(j + 1);
  return matrix[i][j];
}
template <class T>
const T* at(const std::vector<std::vector<T>>& matrix, int row, int column) {
  const auto i = static_cast<std::size_t>(row), j = static_cast<std::size_t>(column);
  return i < matrix.size() && j < matrix[i].size() ? &matrix[i][j] : nullptr;
}

}  // namespace

int JobModel::family_index(const std::string& name) {
  return families_.emplace(name, static_cast<int>(families_.size())).first->second;
}

void JobModel::add(JobId job, JobTruth truth) {
  YMIR_CHECK(job.value < 10'000'000, "job ids of a simulation count from 1");
  if (jobs_.size() <= job.value) jobs_.resize(job.value + 1);
  jobs_[job.value] = {.truth = std::move(truth), .family = 0};
  jobs_[job.value].family = family_index(jobs_[job.value].truth.family);
}

const JobModel::Entry& JobModel::entry(JobId job) const {
  YMIR_CHECK(job.value < jobs_.size() && jobs_[job.value].family >= 0,
             "no truth of " + to_string(job));
  return jobs_[job.value];
}

void JobModel::set_spatial(JobId first, JobId second, SpatialTruth truth) {
  YMIR_CHECK(first < second, "a spatial pair names the smaller id first");
  spatial_[{first, second}] = truth;
}

void JobModel::set_family_temporal(const std::string& source, const std::string& target,
                                   double gain) {
  grow(family_temporal_, family_index(source), family_index(target)) = gain;
}

void JobModel::set_family_spatial(const std::string& first, const std::string& second,
                                  SpatialTruth truth) {
  const int a = family_index(first), b = family_index(second);
  grow(family_spatial_, a, b) = truth;
  grow(family_spatial_, b, a) = {truth.gain_second, truth.gain_first, truth.joint};
}

double JobModel::temporal_gain(JobId source, JobId target) const {
  if (!temporal_.empty())
    if (const auto found = temporal_.find({source, target}); found != temporal_.end())
      return found->second;
  const double* gain = at(family_temporal_, family(source), family(target));
  return gain == nullptr ? 0 : *gain;
}

double JobModel::head_start(JobId source, JobId target) const {
  const double gain = temporal_gain(source, target);
  return gain / (1 + gain);
}

SpatialTruth JobModel::spatial(JobId first, JobId second) const {
  if (!spatial_.empty())
    if (const auto found = spatial_.find({first, second}); found != spatial_.end())
      return found->second;
  const SpatialTruth* truth = at(family_spatial_, family(first), family(second));
  return truth == nullptr ? SpatialTruth{} : *truth;
}

Seconds JobModel::step_time(JobId job, int gpus, int nodes) const {
  const JobTruth& truth = entry(job).truth;
  if (!truth.table.rows.empty()) return Seconds(table_time(truth.table.rows, gpus, nodes));
  double speed = 1;
  int reached = 1;
  for (; reached * 2 <= gpus; reached *= 2) speed *= 2 * truth.scaling;
  // Between two powers of two the speed is linear.
  const double next = speed * 2 * truth.scaling;
  speed += (next - speed) * (gpus - reached) / reached;
  return truth.step_time / speed;
}

Seconds JobModel::joint_step_time(JobId first, JobId second, int gpus, int nodes) const {
  return std::max(step_time(first, gpus, nodes), step_time(second, gpus, nodes)) *
         spatial(first, second).joint;
}

double JobModel::metric(JobId job, double progress) const {
  const JobTruth& truth = entry(job).truth;
  return truth.start_metric + (truth.target_metric - truth.start_metric) * shape(progress);
}

double JobModel::progress_at(JobId job, double metric) const {
  const JobTruth& truth = entry(job).truth;
  return inverse_shape((metric - truth.start_metric) / (truth.target_metric - truth.start_metric));
}

double JobModel::loss(JobId, double progress) const {
  return 0.1 + 0.9 / (1 + 3 * std::max(progress, -0.2));
}

}  // namespace ymir
