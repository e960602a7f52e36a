#include <fmt/format.h>

#include <algorithm>

#include "apps/ymir/demo.h"
#include "apps/ymir/terminal.h"
#include "ymir/api/report_html.h"
#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

Cell ended_by(const JobView& job) {
  if (!job.result) return {to_string(job.state), Color::kDim};
  const JobFinished& result = *job.result;
  if (result.outcome != Outcome::kSucceeded)
    return {result.code.empty() ? result.reason : result.code, Color::kRed};
  const bool missed = !job.spec.target.metric.empty() && !result.target_reached;
  return {result.reason, missed ? Color::kYellow : Color::kGreen};
}

std::string metric_text(const JobView& job) {
  const std::string name = !job.spec.target.metric.empty() ? job.spec.target.metric
                           : job.spec.metrics.empty()      ? ""
                                                           : job.spec.metrics.front();
  if (!job.result) return "";
  const auto it = job.result->metrics.find(name);
  std::string text = it == job.result->metrics.end() ? "-" : fmt::format("{:.3f}", it->second);
  if (!job.spec.target.metric.empty()) text += fmt::format(" / {:.3g}", job.spec.target.value);
  return text;
}

std::string why_of(const JobView& job) {
  if (!job.transfers.empty()) return job.transfers.back().why;
  return job.result ? job.result->text : "";
}

// With the interval that the baseline leaves: a predicted one is no measurement.
std::string actual_gain(const TransferSettled& settled) {
  return fmt::format("{}{:.2f}x ({:.2f}-{:.2f}) {}", settled.censored ? "<= " : "", settled.actual,
                     settled.range.p10, settled.range.p90, settled.baseline);
}

std::vector<Cell> row_of(const JobView& job) {
  std::vector<Cell> row{{to_string(job.id)}, {job.spec.name}, ended_by(job)};
  if (job.transfers.empty()) {
    row.insert(row.end(), {{"alone"}, {""}, {""}, {""}});
  } else {
    static constexpr const char* kVerdicts[] = {"open", "kept", "rolled back"};
    static constexpr Color kColors[] = {Color::kDim, Color::kGreen, Color::kRed};
    const Transfer& merge = job.transfers.back();
    const auto verdict = static_cast<std::size_t>(merge.verdict);
    const Interval& speedup = merge.card.speedup;
    row.push_back(
        {fmt::format("{} {} {}", to_string(merge.mode),
                     merge.mode == Mode::kSpatial ? "with" : "after", to_string(merge.partner))});
    // A target that is reached before two epochs of its own data leaves nothing to judge.
    const bool unjudged = merge.verdict == Transfer::Verdict::kOpen && job.ended();
    row.push_back({unjudged ? "ended first" : kVerdicts[verdict], kColors[verdict]});
    row.push_back({fmt::format("{:.2f}x ({:.2f}-{:.2f})", speedup.p50, speedup.p10, speedup.p90)});
    row.push_back({merge.settled ? actual_gain(*merge.settled) : ""});
  }
  const double whole = job.finished ? (*job.finished - job.submitted).count() : 0;
  row.push_back({metric_text(job)});
  row.push_back({std::to_string(job.result ? job.result->step : job.steps_done)});
  row.push_back({format_duration(job.waited.count())});
  row.push_back({job.finished ? format_duration(whole) : "-"});
  row.push_back({why_of(job), Color::kDim});
  return row;
}

}  // namespace

std::string result_table(const Snapshot& state, bool no_color) {
  Table table({{"job", false, false},
               {"name", false, true},
               {"ended by", false, false},
               {"mode", false, true},
               {"verdict", false, false},
               {"predicted gain", false, true},
               {"actual gain", false, true},
               {"result / target", false, false},
               {"steps", true, false},
               {"waited", true, false},
               {"completion", true, false},
               {"why", false, true}});
  for (const auto& [id, job] : state.jobs) table.row(row_of(job));
  return table.lines(Terminal::detect(no_color));
}

bool all_good(const Snapshot& state) {
  return !state.jobs.empty() &&
         std::all_of(state.jobs.begin(), state.jobs.end(),
                     [](const auto& entry) { return entry.second.state == JobState::kSucceeded; });
}

std::string comparison_text(const ReportComparison& comparison) {
  std::string text = fmt::format("{:<26}{:>12}{:>20}{:>9}\n", "", "Ymir", "one after another", "");
  const auto line = [&](const char* name, double shared, double sequential) {
    text += fmt::format("{:<26}{:>12}{:>20}{:>8.2f}x\n", name, format_duration(shared),
                        format_duration(sequential), shared > 0 ? sequential / shared : 0.0);
  };
  line("until the last job ended", comparison.shared.makespan, comparison.sequential.makespan);
  line("mean completion", comparison.shared.mean, comparison.sequential.mean);
  line("worst completion", comparison.shared.worst, comparison.sequential.worst);
  text +=
      "\nsteps of the jobs that learnt from another one, and of the same jobs alone (measured):\n";
  for (const ReportComparison::Job& job : comparison.jobs)
    if (job.learnt && job.shared_steps > 0)
      text += fmt::format(
          "  {:<24}{:>12}{:>20}{:>8.2f}x\n", job.name, job.shared_steps, job.sequential_steps,
          static_cast<double>(job.sequential_steps) / static_cast<double>(job.shared_steps));
  return text;
}

}  // namespace ymir::cli
