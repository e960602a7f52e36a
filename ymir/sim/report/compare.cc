#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/base/text.h"
#include "ymir/sim/metrics/gpu_time.h"
#include "ymir/sim/metrics/statistics.h"
#include "ymir/sim/report/report.h"

namespace ymir {
namespace {

constexpr double kTold = 1.05;  // a difference that is told

using Number = std::function<double(const SimulationSummary&)>;
const std::vector<std::pair<std::string, Number>>& numbers() {
  using S = SimulationSummary;
  static const std::vector<std::pair<std::string, Number>> list{
      {"avg_jct_s", [](const S& s) { return s.avg_jct_s; }},
      {"p50_jct_s", [](const S& s) { return s.p50_jct_s; }},
      {"p99_jct_s", [](const S& s) { return s.p99_jct_s; }},
      {"max_jct_s", [](const S& s) { return s.max_jct_s; }},
      {"makespan_s", [](const S& s) { return s.makespan_s; }},
      {"avg_queueing_s", [](const S& s) { return s.avg_queueing_s; }},
      {"longest_wait_s", [](const S& s) { return s.longest_wait_s; }},
      {"rho_max", [](const S& s) { return s.rho_max; }},
      {"rho_unfair_share", [](const S& s) { return s.rho_unfair_share; }},
      {"restarts_per_job", [](const S& s) { return s.restarts_per_job; }},
      {"gpu_use", [](const S& s) { return s.gpu_use; }},
  };
  return list;
}

// The runs of one policy, by seed.
struct Runs {
  std::vector<const RunRecord*> records{};
  std::vector<const SimulationSummary*> summaries{};
};
Runs runs_of(const SimulationReport& input, const std::string& policy) {
  Runs runs;
  for (std::size_t i = 0; i < input.records.size(); ++i)
    if (input.records[i]->policy == policy) {
      runs.records.push_back(input.records[i]);
      runs.summaries.push_back(input.summaries[i]);
    }
  return runs;
}

std::vector<std::string> policies_of(const SimulationReport& input) {
  std::vector<std::string> names;
  for (const RunRecord* record : input.records)
    if (std::ranges::find(names, record->policy) == names.end()) names.push_back(record->policy);
  return names;
}

std::map<std::string_view, const JobRecord*> by_name(const RunRecord& record) {
  std::map<std::string_view, const JobRecord*> jobs;
  for (const JobRecord& job : record.jobs) jobs[job.name] = &job;
  return jobs;
}

// {baseline's, policy's} completion times of the jobs that finished in both.
std::vector<std::pair<double, double>> times_in_both(const RunRecord& mine, const RunRecord& base) {
  std::vector<std::pair<double, double>> times;
  const auto others = by_name(base);
  for (const JobRecord& job : mine.jobs) {
    const auto other = others.find(job.name);
    if (other == others.end() || !job.finished || !other->second->finished) continue;
    if (job.jct_s() > 0) times.emplace_back(other->second->jct_s(), job.jct_s());
  }
  return times;
}

void pair_jobs(const Runs& mine, const Runs& base, PolicyComparison& comparison) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(mine.records.size(), base.records.size()); ++i)
    for (const auto& [other, own] : times_in_both(*mine.records[i], *base.records[i]))
      ratios.push_back(other / own);
  const auto share = [&](auto test) {
    return ratios.empty() ? std::nan("")
                          : static_cast<double>(std::ranges::count_if(ratios, test)) /
                                static_cast<double>(ratios.size());
  };
  comparison.jobs_compared = static_cast<std::int64_t>(ratios.size());
  comparison.share_better = share([](double r) { return r > kTold; });
  comparison.share_worse = share([](double r) { return r < 1 / kTold; });
  comparison.ratio_p25 = quantile(ratios, 0.25);
  comparison.ratio_p50 = quantile(ratios, 0.5);
  comparison.ratio_p75 = quantile(ratios, 0.75);
  std::erase_if(ratios, [](double r) { return !(r > 0); });
  comparison.ratio_geometric_mean = geometric_mean(ratios);
}

// Why a job took longer than under the baseline, from what its record says.
std::string cause_of(const JobRecord& job, const JobRecord& base) {
  const double later = job.queueing_s - base.queueing_s;
  const double lost = job.jct_s() - base.jct_s();
  if (job.rolled_back)
    return fmt::format("rollback: its pairing with {} was taken back, {:.0f} s lost", job.partner,
                       job.extra_jct_s);
  if (later > lost / 2) {
    std::string why = fmt::format("waited {} more", format_duration(later));
    if (!job.waited_because.empty()) why += " (" + job.waited_because + ")";
    if (job.restarts > base.restarts)
      why += fmt::format(", stopped {} times against {}", job.restarts, base.restarts);
    return why;
  }
  if (job.restarts > base.restarts)
    return fmt::format("preempted or resized {} times against {}", job.restarts, base.restarts);
  if (!job.partner.empty()) return fmt::format("slower beside {} ({})", job.partner, job.mode);
  if (job.last_gpus > 0 && base.last_gpus > job.last_gpus)
    return fmt::format("ended on {} GPUs against {}", job.last_gpus, base.last_gpus);
  return "ran slower";
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

void add_cdf(std::string& csv, const std::string& policy, const char* what,
             std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  for (std::size_t i = 0; i < values.size(); ++i)
    csv += fmt::format("{},{},{},{}\n", policy, what, values[i],
                       static_cast<double>(i + 1) / static_cast<double>(values.size()));
}

std::string cdf_csv(const SimulationReport& input) {
  std::string csv = "policy,what,value,fraction\n";
  for (const std::string& policy : policies_of(input)) {
    const Runs runs = runs_of(input, policy);
    std::vector<double> jct, queueing;
    for (const JobRecord& job : runs.records.front()->jobs) {
      if (!job.finished) continue;
      jct.push_back(job.jct_s());
      queueing.push_back(job.queueing_s);
    }
    add_cdf(csv, policy, "jct_s", jct);
    add_cdf(csv, policy, "queueing_s", queueing);
    add_cdf(csv, policy, "slowdown", runs.summaries.front()->job_slowdown);
    add_cdf(csv, policy, "rho", runs.summaries.front()->job_rho);
  }
  return csv;
}

std::string cluster_csv(const SimulationReport& input) {
  std::string csv =
      "policy,at_s,training_gpus,switching_gpus,profiling_gpus,waiting_jobs,"
      "active_jobs\n";
  for (const std::string& policy : policies_of(input))
    for (const ClusterPoint& p : cluster_over_time(*runs_of(input, policy).records.front()))
      csv += fmt::format("{},{},{},{},{},{},{}\n", policy, static_cast<double>(p.at) / 1e6,
                         p.training, p.switching, p.profiling, p.waiting, p.active);
  return csv;
}

std::string comparison_csv(const SimulationReport& input) {
  std::string csv =
      "policy,seeds,number,mean,half_width_95,ratio_to_baseline,ratio_half_width_95\n";
  for (const PolicyComparison& one : compare(input)) {
    for (const auto& [name, value] : one.numbers)
      csv += fmt::format("{},{},{},{},{},{},{}\n", one.policy, one.seeds, name, number(value.mean),
                         number(value.half_width), number(value.ratio),
                         number(value.ratio_half_width));
    for (const auto& [name, value] :
         {std::pair{"job_ratio_geometric_mean", one.ratio_geometric_mean},
          std::pair{"job_ratio_p25", one.ratio_p25}, std::pair{"job_ratio_p50", one.ratio_p50},
          std::pair{"job_ratio_p75", one.ratio_p75}, std::pair{"share_better", one.share_better},
          std::pair{"share_worse", one.share_worse}})
      csv += fmt::format("{},{},{},{},,,\n", one.policy, one.seeds, name, number(value));
  }
  return csv;
}

}  // namespace

std::vector<PolicyComparison> compare(const SimulationReport& input) {
  const Runs base = runs_of(input, input.baseline);
  std::vector<PolicyComparison> all;
  for (const std::string& policy : policies_of(input)) {
    const Runs mine = runs_of(input, policy);
    PolicyComparison comparison{.policy = policy, .seeds = static_cast<int>(mine.records.size())};
    for (const auto& [name, take] : numbers()) {
      std::vector<double> values, ratios;
      for (std::size_t i = 0; i < mine.summaries.size(); ++i) {
        values.push_back(take(*mine.summaries[i]));
        if (i < base.summaries.size()) ratios.push_back(take(*base.summaries[i]) / values.back());
      }
      comparison.numbers[name] = {mean(values), half_width_95(values), mean(ratios),
                                  half_width_95(ratios)};
    }
    pair_jobs(mine, base, comparison);
    all.push_back(std::move(comparison));
  }
  return all;
}

std::vector<std::pair<double, double>> paired_times(const SimulationReport& input,
                                                    const std::string& policy) {
  const Runs base = runs_of(input, input.baseline), mine = runs_of(input, policy);
  if (base.records.empty() || mine.records.empty()) return {};
  return times_in_both(*mine.records.front(), *base.records.front());
}

std::vector<Loser> losers(const SimulationReport& input, std::size_t most_each) {
  const Runs base = runs_of(input, input.baseline);
  std::vector<Loser> all;
  if (base.records.empty()) return all;
  const auto others = by_name(*base.records.front());
  for (const std::string& policy : policies_of(input)) {
    if (policy == input.baseline) continue;
    std::vector<Loser> mine;
    for (const JobRecord& job : runs_of(input, policy).records.front()->jobs) {
      const auto other = others.find(job.name);
      if (other == others.end() || !job.finished || !other->second->finished) continue;
      if (job.jct_s() > other->second->jct_s() * kTold)
        mine.push_back(
            {policy, job.name, job.jct_s(), other->second->jct_s(), cause_of(job, *other->second)});
    }
    std::ranges::stable_sort(mine, std::ranges::greater{},
                             [](const Loser& loser) { return loser.jct_s - loser.baseline_jct_s; });
    if (mine.size() > most_each) mine.resize(most_each);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

Result<> write_comparison_tables(const SimulationReport& input, const std::string& folder) {
  YMIR_TRY(write_file(folder + "/comparison.csv", comparison_csv(input)));
  YMIR_TRY(write_file(folder + "/cdf.csv", cdf_csv(input)));
  YMIR_TRY(write_file(folder + "/cluster.csv", cluster_csv(input)));
  std::string csv = "policy,job,jct_s,baseline_jct_s,cause\n";
  for (const Loser& loser : losers(input, SIZE_MAX))
    csv += fmt::format("{},{},{},{},{}\n", loser.policy, csv_field(loser.job), loser.jct_s,
                       loser.baseline_jct_s, csv_field(loser.cause));
  return write_file(folder + "/who_paid.csv", csv);
}

}  // namespace ymir
