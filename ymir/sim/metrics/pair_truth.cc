#include "ymir/sim/metrics/pair_truth.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace ymir {
namespace {

JobId id_of(int job) { return JobId{static_cast<std::uint64_t>(job) + 1}; }

std::string task_of(const WorkloadJob& job) { return job.backbone + "/" + job.task; }

}  // namespace

PairTruth::PairTruth(const Workload& workload, const JobModel& model)
    : workload_(workload), model_(model) {
  std::map<std::string, std::size_t> number;
  for (const WorkloadJob& job : workload.jobs)
    task_.push_back(number.try_emplace(task_of(job), number.size()).first->second);
  num_tasks_ = number.size();
  gains_.resize(num_tasks_ * num_tasks_);
  best_speed_.assign(num_tasks_, 1);
  const auto both = [&](const std::string& pair,
                        char sign) -> std::optional<std::pair<std::size_t, std::size_t>> {
    const std::size_t at = pair.find(sign);
    if (at == std::string::npos) return std::nullopt;
    const auto first = number.find(pair.substr(0, at)), second = number.find(pair.substr(at + 1));
    if (first == number.end() || second == number.end()) return std::nullopt;
    return std::pair(first->second, second->second);
  };
  const auto note = [this](std::size_t task, double speed) {
    best_speed_[task] = std::max(best_speed_[task], speed);
  };
  for (const auto& [pair, gain] : workload.temporal)
    if (const auto tasks = both(pair, '>')) {
      gains_[tasks->first * num_tasks_ + tasks->second].temporal = gain;
      note(tasks->second, 1 + gain);
    }
  for (const auto& [pair, v] : workload.spatial)
    if (const auto tasks = both(pair, '+')) {
      const auto [a, b] = *tasks;
      gains_[b * num_tasks_ + a].spatial = {v[1], v[0], v[2]};
      gains_[a * num_tasks_ + b].spatial = {v[0], v[1], v[2]};
      note(a, (1 + v[0]) / v[2]);
      note(b, (1 + v[1]) / v[2]);
    }
}

const PairTruth::PairGains& PairTruth::gains(int first, int second) const {
  return gains_[task_[static_cast<std::size_t>(first)] * num_tasks_ +
                task_[static_cast<std::size_t>(second)]];
}

double PairTruth::solo(int job, int gpus) const {
  return static_cast<double>(model_.job(id_of(job)).steps) *
         model_.step_time(id_of(job), gpus).count();
}

double PairTruth::temporal_weight(int source, int target, int gpus, double source_left) const {
  const double a = source_left, b = solo(target, gpus);
  const double after = b / (1 + gains(source, target).temporal);
  return (a + b + std::min(a, b)) / (2 * a + after);
}

double PairTruth::spatial_weight(int first, int second, int gpus) const {
  const SpatialTruth truth = gains(first, second).spatial;
  const double a = solo(first, gpus), b = solo(second, gpus);
  const double step =
      truth.joint *
      std::max(model_.step_time(id_of(first), gpus), model_.step_time(id_of(second), gpus)).count();
  const double steps_a =
      static_cast<double>(model_.job(id_of(first)).steps) / (1 + truth.gain_first);
  const double steps_b =
      static_cast<double>(model_.job(id_of(second)).steps) / (1 + truth.gain_second);
  // Until the first of them has ended they step together; then the other goes on alone, still at
  // the speed that it has learnt.
  const double together = std::min(steps_a, steps_b) * step;
  const bool a_first = steps_a <= steps_b;
  const double rest =
      std::abs(steps_a - steps_b) * model_.step_time(id_of(a_first ? second : first), gpus).count();
  return (a + b + std::min(a, b)) / (2 * together + rest);
}

// What a job truly still had to run at an instant: to its end if it ran then, else all of it.
double PairTruth::left_of(const RunRecord& record, int job, double at, int gpus) const {
  const JobRecord& of = record.jobs[static_cast<std::size_t>(job)];
  const double alone = solo(job, gpus);
  if (!of.completion_s) return alone;
  return std::clamp(*of.completion_s - at, 0.0, alone);
}

double PairTruth::weight_of(const RunRecord& record, const Merge& merge) const {
  const int gpus = std::max(1, merge.gpus);
  if (merge.mode == Mode::kSpatial) return spatial_weight(merge.job, merge.partner, gpus);
  const double at = static_cast<double>(merge.decided) / 1e6;
  return temporal_weight(merge.partner, merge.job, gpus, left_of(record, merge.partner, at, gpus));
}

double PairTruth::least_seconds(int job, double noise) const {
  const WorkloadJob& given = workload_.jobs[static_cast<std::size_t>(job)];
  double best = std::min(solo(job, given.min_gpus), solo(job, given.max_gpus));
  const int step = std::max(1, (given.max_gpus - given.min_gpus) / 64);
  for (int gpus = given.min_gpus; gpus < given.max_gpus; gpus += step)
    best = std::min(best, solo(job, gpus));
  if (given.share) best /= best_speed_[task_[static_cast<std::size_t>(job)]];
  const JobTruth& truth = model_.job(id_of(job));
  if (noise > 0)
    best *= std::clamp(model_.progress_at(id_of(job), truth.target_metric - noise), 0.0, 1.0);
  return best;
}

PairTruth::Missed PairTruth::missed(const RunRecord& record, double theta) const {
  Missed missed;
  std::vector<int> first_hold(record.jobs.size(), -1);
  for (std::size_t i = 0; i < record.holds.size(); ++i)
    if (const Hold& hold = record.holds[i]; !hold.profile)
      for (const int job : hold.jobs)
        if (int& first = first_hold[static_cast<std::size_t>(job)]; first < 0)
          first = static_cast<int>(i);
  for (std::size_t i = 0; i < record.jobs.size(); ++i) {
    const JobRecord& job = record.jobs[i];
    if (first_hold[i] < 0 || job.merged || !workload_.jobs[i].share) continue;
    const Hold& hold = record.holds[static_cast<std::size_t>(first_hold[i])];
    const double at = static_cast<double>(hold.from) / 1e6;
    const int gpus = static_cast<int>(hold.gpus.size());
    const int self = static_cast<int>(i);
    double best = 0;
    for (std::size_t k = 0; k < record.jobs.size(); ++k) {
      const WorkloadJob& other = workload_.jobs[k];
      const WorkloadJob& mine = workload_.jobs[i];
      if (k == i || !other.share || other.backbone != mine.backbone || other.domain != mine.domain)
        continue;
      if (record.jobs[k].submission_s > at) break;  // jobs are in the order of submission
      const int partner = static_cast<int>(k);
      const double left = left_of(record, partner, at, gpus), alone = solo(self, gpus);
      const double apart = left + alone + std::min(left, alone);
      const double weight = temporal_weight(partner, self, gpus, left);
      if (weight >= theta) best = std::max(best, apart - apart / weight);
      const bool fresh = record.jobs[k].first_start_s.value_or(INFINITY) >= at;
      if (!fresh || record.jobs[k].merged) continue;
      const double both = spatial_weight(self, partner, gpus);
      const double other_alone = solo(partner, gpus);
      const double sum = alone + other_alone + std::min(alone, other_alone);
      if (both >= theta) best = std::max(best, sum - sum / both);
    }
    if (best <= 0) continue;
    ++missed.count;
    missed.gain_s += best;
  }
  return missed;
}

}  // namespace ymir
