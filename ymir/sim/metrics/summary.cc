#include "ymir/sim/metrics/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ymir/sim/metrics/statistics.h"

namespace ymir {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void add_times(const RunRecord& record, SimulationSummary& summary) {
  std::vector<double> jct, with_censored, queueing, first_wait;
  const double horizon = static_cast<double>(record.end()) / 1e6;
  double restarts = 0;
  for (const JobRecord& job : record.jobs) {
    (job.finished ? summary.finished : summary.censored) += 1;
    restarts += job.restarts;
    with_censored.push_back(job.completion_s.value_or(horizon) - job.submission_s);
    if (!job.finished) continue;
    jct.push_back(job.jct_s());
    queueing.push_back(job.queueing_s);
    first_wait.push_back(job.first_wait_s);
  }
  summary.jobs = static_cast<int>(record.jobs.size());
  summary.avg_jct_s = mean(jct);
  summary.p50_jct_s = quantile(jct, 0.5);
  summary.p99_jct_s = quantile(jct, 0.99);
  summary.max_jct_s = quantile(jct, 1);
  summary.avg_jct_with_censored_s = mean(with_censored);
  summary.avg_queueing_s = mean(queueing);
  summary.avg_first_wait_s = mean(first_wait);
  summary.longest_wait_s = quantile(queueing, 1);
  summary.makespan_s = static_cast<double>(record.end() - record.begin()) / 1e6;
  summary.restarts_per_job = restarts / std::max(1.0, static_cast<double>(record.jobs.size()));
}

void add_fairness(const RunRecord& record, const SummaryTruth& truth, SimulationSummary& summary) {
  summary.rho = truth.rho;
  summary.rho_max = summary.rho_unfair_share = summary.avg_slowdown = summary.max_slowdown = kNan;
  if (truth.solo == nullptr) return;
  for (auto& [name, values] : fairness(record, *truth.solo)) {
    if (name == truth.rho) summary.job_rho = values;
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    const auto unfair =
        static_cast<double>(std::ranges::count_if(values, [](double r) { return r > 1; }));
    summary.rho_all[name] = {quantile(values, 1), quantile(values, 0.99), mean(values),
                             values.empty() ? kNan : unfair / static_cast<double>(values.size())};
  }
  if (const auto chosen = summary.rho_all.find(truth.rho); chosen != summary.rho_all.end()) {
    summary.rho_max = chosen->second.max;
    summary.rho_unfair_share = chosen->second.unfair_share;
  }
  std::vector<double> slowdown;
  for (std::size_t i = 0; i < record.jobs.size(); ++i) {
    const double value =
        record.jobs[i].jct_s() / truth.solo->seconds(i, record.jobs[i].requested_gpus);
    summary.job_slowdown.push_back(value);
    if (std::isfinite(value)) slowdown.push_back(value);
  }
  summary.avg_slowdown = mean(slowdown);
  summary.max_slowdown = quantile(slowdown, 1);
}

void add_gpu_time(const RunRecord& record, SimulationSummary& summary) {
  const GpuTime time = gpu_time(record);
  const auto seconds = [](Micro t) { return static_cast<double>(t) / 1e6; };
  summary.gpu_seconds = {{"useful", seconds(time.useful)},
                         {"redone", seconds(time.redone)},
                         {"switch", seconds(time.switching)},
                         {"profile", seconds(time.profile)},
                         {"blocked", seconds(time.blocked)},
                         {"idle", seconds(time.idle())},
                         {"idle_waiting", seconds(time.idle_waiting)},
                         {"idle_empty", seconds(time.idle_empty)}};
  summary.gpu_use =
      time.sum() > 0 ? static_cast<double>(time.useful) / static_cast<double>(time.sum()) : kNan;
  std::map<std::string, double> modes;
  for (const JobRecord& job : record.jobs) modes[job.mode] += 1;
  for (const Mode mode : {Mode::kNormal, Mode::kTemporal, Mode::kSpatial}) {
    const std::string name = to_string(mode);
    summary.mode_share[name] = modes[name] / std::max(1.0, static_cast<double>(record.jobs.size()));
    summary.mode_gpu_share[name] = static_cast<double>(time.by_mode[static_cast<int>(mode)]) /
                                   std::max(1.0, static_cast<double>(time.useful));
  }
}

void count(Confusion& confusion, bool said, bool was) {
  ++(said ? (was ? confusion.right_yes : confusion.wrong_yes)
          : (was ? confusion.wrong_no : confusion.right_no));
}

void add_transfers(const RunRecord& record, const SummaryTruth& truth, SimulationSummary& summary) {
  std::vector<double> errors, signs;
  for (const Merge& merge : record.merges) {
    ++summary.merges;
    summary.rollbacks += merge.verdict == "split" ? 1 : 0;
    if (truth.pairs != nullptr) {
      const bool right = truth.pairs->weight_of(record, merge) >= 1;
      summary.false_merges += right ? 0 : 1;
      if (merge.verdict != "open") count(summary.kept, merge.verdict == "kept", right);
    }
    if (!merge.actual_gain) continue;
    const double predicted = 1 + merge.predicted_gain, actual = 1 + *merge.actual_gain;
    errors.push_back(std::abs(predicted - actual) / actual);
    count(summary.helps, predicted > 1, actual > 1);
    signs.push_back((predicted > 1) == (actual > 1) ? 1 : 0);
  }
  for (const JobRecord& job : record.jobs) summary.extra_jct_s += job.extra_jct_s;
  summary.gains_measured = static_cast<std::int64_t>(errors.size());
  summary.gain_mape = mean(errors);
  summary.gain_sign_accuracy = mean(signs);
  if (truth.pairs == nullptr) return;
  const PairTruth::Missed missed = truth.pairs->missed(record, truth.theta);
  summary.missed_merges = missed.count;
  summary.missed_gain_s = missed.gain_s;
}

}  // namespace

SimulationSummary summarise(const RunRecord& record, const SummaryTruth& truth) {
  SimulationSummary summary{.policy = record.policy, .seed = record.seed};
  add_times(record, summary);
  add_fairness(record, truth, summary);
  add_gpu_time(record, summary);
  add_transfers(record, truth, summary);
  summary.rounds = static_cast<std::int64_t>(record.rounds.size());
  for (const RoundRecord& round : record.rounds)
    summary.unproved_rounds +=
        round.proof.empty() || round.proof == "optimal" || round.proof == "heuristic" ? 0 : 1;
  summary.solver_ms_mean = record.solve_ms.empty() ? 0 : mean(record.solve_ms);
  summary.solver_ms_p99 = record.solve_ms.empty() ? 0 : quantile(record.solve_ms, 0.99);
  summary.solver_ms_max = record.solve_ms.empty() ? 0 : quantile(record.solve_ms, 1);
  summary.profile_wait_s = record.profile_wait_s;
  summary.notes = record.notes;
  return summary;
}

}  // namespace ymir
