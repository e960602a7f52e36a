#include "ymir/sim/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generated/sim_report_assets.h"
#include "ymir/base/base64.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/sim/metrics/gpu_time.h"
#include "ymir/sim/metrics/statistics.h"

namespace ymir {
namespace {

// Runs, jobs and merges that are drawn: of one policy, and of all. The file stays below 30 MB.
constexpr std::size_t kMostDrawn = 60'000, kMostDrawnInAll = 200'000;
constexpr std::size_t kMostPoints = 1'500;  // of a line

Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
// Milliseconds are enough for a picture.
double seconds(Micro time) { return std::round(static_cast<double>(time) / 1e3) / 1e3; }

// At most kMostPoints of a sorted sample, the ends kept: enough for a curve.
Json quantiles(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  Json list = Json::array();
  const std::size_t count = std::min(values.size(), std::size_t{400});
  for (std::size_t i = 0; i < count; ++i)
    list.push_back(values[count == 1 ? 0 : i * (values.size() - 1) / (count - 1)]);
  return list;
}

Json cdfs_of(const RunRecord& record, const SimulationSummary& summary) {
  std::vector<double> jct, queueing;
  for (const JobRecord& job : record.jobs) {
    if (!job.finished) continue;
    jct.push_back(job.jct_s());
    queueing.push_back(job.queueing_s);
  }
  return {{"jct", quantiles(jct)},
          {"queueing", quantiles(queueing)},
          {"slowdown", quantiles(summary.job_slowdown)},
          {"rho", quantiles(summary.job_rho)}};
}

// Time-weighted means of equal spans, so that a thin line hides no peak of many instants.
Json over_time(const RunRecord& record) {
  const std::vector<ClusterPoint> points = cluster_over_time(record);
  const Micro begin = record.begin(), end = std::max(record.end(), begin + 1);
  const Micro span = std::max<Micro>(1, (end - begin) / static_cast<Micro>(kMostPoints / 3) + 1);
  Json list = Json::array();
  std::size_t at = 0;
  for (Micro from = begin; from < end; from += span) {
    const Micro to = std::min(end, from + span);
    double training = 0, switching = 0, profiling = 0, waiting = 0;
    while (at + 1 < points.size() && points[at + 1].at <= from) ++at;
    for (std::size_t k = at; k < points.size() && points[k].at < to; ++k) {
      const Micro until = k + 1 < points.size() ? points[k + 1].at : end;
      const double weight = static_cast<double>(std::max<Micro>(
                                0, std::min(until, to) - std::max(points[k].at, from))) /
                            static_cast<double>(to - from);
      training += weight * points[k].training;
      switching += weight * points[k].switching;
      profiling += weight * points[k].profiling;
      waiting += weight * points[k].waiting;
    }
    list.push_back({seconds(from), training, switching, profiling, waiting});
  }
  return list;
}

Json jobs_of(const RunRecord& record, const std::vector<std::string>& backbones) {
  Json list = Json::array();
  for (const JobRecord& job : record.jobs) {
    const auto backbone = std::ranges::find(backbones, job.backbone) - backbones.begin();
    list.push_back({job.name, backbone, job.dataset, job.submission_s,
                    job.completion_s ? Json(*job.completion_s) : Json(), job.mode, job.partner,
                    job.predicted_gain ? Json(*job.predicted_gain) : Json(),
                    job.actual_gain ? Json(*job.actual_gain) : Json(), job.waited_because});
  }
  return list;
}

std::size_t drawn_size(const RunRecord& record) {
  return record.holds.size() + record.jobs.size() + record.merges.size();
}

// When 99 of 100 jobs had ended: what comes later is a long tail.
double busy_until(const RunRecord& record) {
  std::vector<double> ends;
  for (const JobRecord& job : record.jobs)
    if (job.completion_s) ends.push_back(*job.completion_s);
  return ends.empty() ? seconds(record.end()) : quantile(std::move(ends), 0.99);
}

Json holds_of(const RunRecord& record) {
  Json list = Json::array();
  for (const Hold& hold : record.holds)
    list.push_back({seconds(hold.from), seconds(hold.ready), seconds(hold.to), hold.jobs, hold.gpus,
                    hold.profile ? 3 : static_cast<int>(hold.mode), hold.partner,
                    seconds(hold.redone), hold.why_ended});
  return list;
}

Json merges_of(const RunRecord& record) {
  Json list = Json::array();
  for (const Merge& merge : record.merges)
    list.push_back({merge.job, merge.partner, static_cast<int>(merge.mode), seconds(merge.from),
                    merge.split ? Json(seconds(*merge.split)) : Json(), merge.predicted_gain,
                    merge.actual_gain ? Json(*merge.actual_gain) : Json(), merge.verdict,
                    merge.why});
  return list;
}

Json comparison_json(const PolicyComparison& one) {
  Json numbers = Json::object();
  for (const auto& [name, value] : one.numbers)
    numbers[name] = {json_number(value.mean), json_number(value.half_width),
                     json_number(value.ratio), json_number(value.ratio_half_width)};
  return {{"policy", one.policy},
          {"seeds", one.seeds},
          {"numbers", numbers},
          {"jobs", one.jobs_compared},
          {"geometric", json_number(one.ratio_geometric_mean)},
          {"p25", json_number(one.ratio_p25)},
          {"p50", json_number(one.ratio_p50)},
          {"p75", json_number(one.ratio_p75)},
          {"better", json_number(one.share_better)},
          {"worse", json_number(one.share_worse)}};
}

Json confusion_json(const Confusion& c) {
  return {c.right_yes, c.wrong_yes, c.wrong_no, c.right_no};
}

Json transfer_json(const SimulationSummary& s) {
  return {{"merges", s.merges},
          {"rollbacks", s.rollbacks},
          {"false", s.false_merges},
          {"missed", s.missed_merges},
          {"missed_gain_s", s.missed_gain_s},
          {"extra_jct_s", s.extra_jct_s},
          {"measured", s.gains_measured},
          {"mape", json_number(s.gain_mape)},
          {"sign", json_number(s.gain_sign_accuracy)},
          {"helps", confusion_json(s.helps)},
          {"kept", confusion_json(s.kept)}};
}

// Shares of jobs by mode, for each backbone.
Json modes_by_backbone(const RunRecord& record, const std::vector<std::string>& backbones) {
  std::vector<std::map<std::string, int>> counts(backbones.size());
  for (const JobRecord& job : record.jobs)
    ++counts[static_cast<std::size_t>(std::ranges::find(backbones, job.backbone) -
                                      backbones.begin())][job.mode.empty() ? "none" : job.mode];
  return counts;
}

Json constants_of(const SimulationReport& input, const std::string& policy) {
  const auto config = input.configs.find(policy);
  if (config == input.configs.end()) return Json::object();
  const auto parsed = parse_json(config->second);
  return parsed && parsed->is_object() ? parsed->value("constants", Json::object())
                                       : Json::object();
}

Json run_json(const RunRecord& record, const SimulationSummary& summary,
              const std::vector<std::string>& backbones, bool draw, const SimulationReport& input) {
  return {{"policy", record.policy},
          {"seed", record.seed},
          {"nodes", record.nodes},
          {"gpus_per_node", record.gpus_per_node},
          {"begin", seconds(record.begin())},
          {"end", seconds(record.end())},
          {"finished", summary.finished},
          {"censored", summary.censored},
          {"rho", summary.rho},
          {"cdf", cdfs_of(record, summary)},
          {"over_time", over_time(record)},
          {"gpu_seconds", summary.gpu_seconds},
          {"modes", modes_by_backbone(record, backbones)},
          {"transfer", transfer_json(summary)},
          {"solver", {summary.solver_ms_mean, summary.solver_ms_p99, summary.solver_ms_max}},
          {"rounds", summary.rounds},
          {"unproved", summary.unproved_rounds},
          {"constants", constants_of(input, record.policy)},
          {"num_jobs", record.jobs.size()},
          {"busy_until", busy_until(record)},
          {"paired", paired_times(input, record.policy)},
          {"jobs", draw ? jobs_of(record, backbones) : Json::array()},
          {"holds", draw ? holds_of(record) : Json::array()},
          {"too_many_holds", !draw},
          {"merges", draw ? merges_of(record) : Json::array()},
          {"broken", summary.broken},
          {"notes", summary.notes}};
}

Json data_of(const SimulationReport& input) {
  std::vector<std::string> backbones, drawn;
  std::size_t in_all = 0;
  for (const RunRecord* record : input.records)
    for (const JobRecord& job : record->jobs)
      if (std::ranges::find(backbones, job.backbone) == backbones.end())
        backbones.push_back(job.backbone);
  Json runs = Json::array(), comparison = Json::array(), paid = Json::array();
  Json broken = Json::array();
  for (std::size_t i = 0; i < input.records.size(); ++i) {
    const RunRecord& record = *input.records[i];
    for (const std::string& fault : input.summaries[i]->broken)
      broken.push_back({record.policy, record.seed, fault});
    if (std::ranges::find(drawn, record.policy) != drawn.end()) continue;
    drawn.push_back(record.policy);
    const std::size_t size = drawn_size(record);
    const bool draw = size <= kMostDrawn && in_all + size <= kMostDrawnInAll;
    in_all += draw ? size : 0;
    runs.push_back(run_json(record, *input.summaries[i], backbones, draw, input));
  }
  for (const PolicyComparison& one : compare(input)) comparison.push_back(comparison_json(one));
  for (const Loser& loser : losers(input))
    paid.push_back({loser.policy, loser.job, loser.jct_s, loser.baseline_jct_s, loser.cause});
  const auto config = parse_json(input.config);
  Json sweep = Json::array();
  for (const SweepPoint& point : input.sweep)
    sweep.push_back(
        {point.value, point.policy, json_number(point.avg_jct_s), json_number(point.p99_jct_s)});
  return {{"name", input.name},
          {"sweep_key", input.sweep_key},
          {"sweep", sweep},
          {"baseline", input.baseline},
          {"config", config ? *config : Json()},
          {"config_hash", sha256(input.config)},
          {"load", input.load > 0 ? Json(input.load) : Json()},
          {"warnings", input.warnings},
          {"backbones", backbones},
          {"comparison", comparison},
          {"runs", runs},
          {"paid", paid},
          {"broken", broken}};
}

// JSON inside a script element: "</script" and "<!--" must not appear, so no '<' does.
std::string inside_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

// As a Content-Security-Policy names a script: base64 of its sha256.
std::string source_hash(std::string_view text) {
  const std::string hex = sha256(text);
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return "'sha256-" + to_base64(bytes) + "'";
}

}  // namespace

std::string write_simulation_report(const SimulationReport& input) {
  const std::string data = inside_script(canonical(data_of(input)));
  // A style can't load anything under default-src 'none'; styles of elements need 'unsafe-inline'.
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<title>Simulation</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<noscript>This "
      "report "
      "is drawn by its own script; the numbers are in the CSV files beside "
      "it.</noscript>\n</main>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}</script>\n</body>\n"
      "</html>\n",
      source_hash(kSimReportJs), kSimReportCss, data, kSimReportJs);
}

}  // namespace ymir
