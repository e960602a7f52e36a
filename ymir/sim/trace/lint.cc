#include "ymir/sim/trace/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/sim/metrics/statistics.h"
#include "ymir/sim/trace/workload_of.h"

namespace ymir {
namespace {

// Classes of GPU time, in GPU-seconds, of the published fine-tuning traces.
const char* size_class(double gpu_seconds) {
  return gpu_seconds < 600      ? "<10 GPU-min"
         : gpu_seconds < 3600   ? "<1 GPU-h"
         : gpu_seconds < 36'000 ? "<10 GPU-h"
                                : ">=10 GPU-h";
}

void note(Lint& lint, std::string fault) {
  constexpr std::size_t kMost = 20;
  if (++lint.num_faults <= kMost) lint.faults.push_back(std::move(fault));
}

// What a cluster cannot run, by line of the trace where there is one.
void check_jobs(const Workload& workload, const std::map<std::string, int>& line_of,
                const std::string& file, Lint& lint) {
  const int gpus = workload.nodes * workload.gpus_per_node;
  int never = 0, beyond = 0;
  for (const WorkloadJob& job : workload.jobs) {
    const auto line = line_of.find(job.name);
    const std::string where =
        fmt::format("{}:{}", file, line == line_of.end() ? job.line : line->second);
    if (job.min_gpus > gpus)
      note(lint,
           fmt::format("{}: asks for {} GPUs, the cluster has {}", where, job.min_gpus, gpus));
    else if (job.gpus > gpus)
      ++beyond;
    never += job.max_steps < job.steps ? 1 : 0;
  }
  if (beyond > 0)
    lint.warnings.push_back(
        fmt::format("{} jobs ask for more than the {} GPUs of the cluster and "
                    "can do with fewer",
                    beyond, gpus));
  if (never > 0)
    lint.warnings.push_back(
        fmt::format("{} jobs never meet their target: they will end censored", never));
}

void add_load(const Workload& workload, const std::map<std::string, int>& line_of, double window_s,
              Lint& lint) {
  lint.load = load_of(workload, window_s);
  lint.has_load = true;
  if (lint.load.load > 1) {
    const WorkloadJob& job = workload.jobs[lint.load.never_empty_from];
    const auto line = line_of.find(job.name);
    lint.warnings.push_back(fmt::format(
        "load {:.2f} > 1: the queue grows as long as jobs come, and cannot drain in "
        "the window; from line {} on ({}, at {:.0f} s) there is always work left",
        lint.load.load, line == line_of.end() ? job.line : line->second, job.name, job.at));
  }
  if (lint.load.under_a_round > 0.05)
    lint.warnings.push_back(fmt::format("{:.0f}% of the jobs run for less than one round of 120 s",
                                        100 * lint.load.under_a_round));
}

Lint lint_ymir(const std::string& file, const std::string& text, const LintOptions& options) {
  Lint lint;
  auto workload = parse_workload(file, text);
  if (!workload) {
    note(lint, workload.error().message);
    return lint;
  }
  if (options.nodes > 0) workload->nodes = options.nodes;
  if (options.gpus_per_node > 0) workload->gpus_per_node = options.gpus_per_node;
  check_jobs(*workload, {}, file, lint);
  add_load(*workload, {}, options.window_s, lint);
  return lint;
}

void lint_trace(TraceScan scan, const LintOptions& options, Lint& lint) {
  lint.faults = scan.faults;
  lint.num_faults = scan.num_faults;
  lint.warnings = scan.trace.warnings;
  if (scan.trace.jobs.empty()) return;
  const TruthOptions truth{.nodes = options.nodes, .gpus_per_node = options.gpus_per_node};
  const auto workload = workload_of(scan.trace, options.profiles, truth);
  if (!workload) {
    // Without profiles the file is still sound; with them, what they do not know is a fault.
    const std::string why = workload.error().message;
    if (options.profiles.empty() || why.find("--nodes") != std::string::npos)
      lint.warnings.push_back("no load report: " + why);
    else
      note(lint, why);
    return;
  }
  std::map<std::string, int> line_of;
  for (const TraceJob& job : scan.trace.jobs) line_of[job.name] = job.line;
  check_jobs(*workload, line_of, scan.trace.file, lint);
  add_load(*workload, line_of, options.window_s, lint);
}

std::string load_text(const LoadReport& load) {
  std::string text =
      fmt::format("  load {:.2f} over {} on {} GPUs; peak backlog {:.1f} GPU-h\n", load.load,
                  format_duration(load.window_s), load.gpus, load.peak_backlog_gpu_hours);
  text += "  load by hour:";
  for (std::size_t i = 0; i < std::min<std::size_t>(load.load_by_hour.size(), 48); ++i)
    text += fmt::format(" {:.2f}", load.load_by_hour[i]);
  text += load.load_by_hour.size() > 48 ? " ...\n" : "\n";
  text += "  GPUs asked for:";
  for (const auto& [gpus, jobs] : load.requests) text += fmt::format(" {}x{}", jobs, gpus);
  text += fmt::format("\n  alone on that: median {}, p90 {}, longest {};",
                      format_duration(load.median_s), format_duration(load.p90_s),
                      format_duration(load.max_s));
  for (const auto& [size, jobs] : load.sizes) text += fmt::format(" {}: {}", size, jobs);
  text += "\n  pairs that may share, of all pairs of a backbone:";
  for (const auto& [backbone, share] : load.eligible_pairs)
    text += fmt::format(" {} {:.0f}%", backbone, 100 * share);
  return text + "\n";
}

}  // namespace

LoadReport load_of(const Workload& workload, double window_s, double round_s) {
  LoadReport report{.jobs = workload.jobs.size(), .gpus = workload.nodes * workload.gpus_per_node};
  if (workload.jobs.empty()) return report;
  const double first = workload.jobs.front().at;
  report.window_s = window_s > 0 ? window_s : workload.jobs.back().at - first;
  const double capacity = report.gpus;
  double sum = 0, backlog = 0, peak = 0, at = first;
  std::vector<double> lengths;
  struct Sharing {
    double all = 0;
    std::map<std::string, double> share{};  // by trust domain
  };
  std::map<std::string, Sharing> pairs;  // jobs, by backbone
  for (const WorkloadJob& job : workload.jobs) {
    const double alone = solo_seconds(job, job.gpus), work = alone * job.gpus;
    lengths.push_back(alone);
    sum += work;
    const double left = std::max(0.0, backlog - (job.at - at) * capacity);
    if (left <= 0) report.never_empty_from = lengths.size() - 1;
    backlog = left + work;
    at = job.at;
    peak = std::max(peak, backlog);
    const auto hour = static_cast<std::size_t>((job.at - first) / 3600);
    if (hour < 100'000) {
      if (report.load_by_hour.size() <= hour) report.load_by_hour.resize(hour + 1, 0);
      report.load_by_hour[hour] += work / (capacity * 3600);
    }
    ++report.requests[job.gpus];
    ++report.sizes[size_class(work)];
    report.under_a_round += alone < round_s ? 1 : 0;
    Sharing& sharing = pairs[job.backbone];
    sharing.all += 1;
    sharing.share[job.domain] += job.share ? 1 : 0;
  }
  for (const auto& [backbone, sharing] : pairs) {
    if (sharing.all < 2) continue;
    double& eligible = report.eligible_pairs[backbone];
    for (const auto& [domain, share] : sharing.share)
      eligible += share * (share - 1) / (sharing.all * (sharing.all - 1));
  }
  report.under_a_round /= static_cast<double>(workload.jobs.size());
  report.load = report.window_s > 0 ? sum / (capacity * report.window_s) : 0;
  report.peak_backlog_gpu_hours = peak / 3600;
  report.median_s = quantile(lengths, 0.5);
  report.p90_s = quantile(lengths, 0.9);
  report.max_s = quantile(lengths, 1);
  return report;
}

Result<Lint> lint_text(const std::string& format, const std::string& file, const std::string& text,
                       const LintOptions& options) {
  if (format == "ymir") return lint_ymir(file, text, options);
  YMIR_TRY_ASSIGN(TraceScan scan, scan_trace(format, file, text));
  Lint lint;
  lint_trace(std::move(scan), options, lint);
  return lint;
}

Result<Lint> lint_file(const std::string& format, const std::string& file,
                       const LintOptions& options) {
  YMIR_TRY_ASSIGN(const std::string text, read_file(file));
  return lint_text(format, file, text, options);
}

std::string to_text(const std::string& file, const Lint& lint) {
  std::string text = fmt::format("{}: ", file);
  text += lint.has_load ? fmt::format("{} jobs, {} GPUs, load {:.2f}\n", lint.load.jobs,
                                      lint.load.gpus, lint.load.load)
                        : std::string(lint.num_faults == 0 ? "no fault\n" : "faults\n");
  for (const std::string& fault : lint.faults) text += "fault: " + fault + "\n";
  if (lint.num_faults > lint.faults.size())
    text += fmt::format("fault: and {} more\n", lint.num_faults - lint.faults.size());
  for (const std::string& warning : lint.warnings) text += "warning: " + warning + "\n";
  if (lint.has_load) text += load_text(lint.load);
  return text;
}

std::string to_json(const Lint& lint) {
  Json json{{"faults", lint.faults},
            {"num_faults", lint.num_faults},
            {"warnings", lint.warnings},
            {"jobs", lint.load.jobs},
            {"load", lint.has_load ? Json(lint.load.load) : Json()}};
  if (lint.has_load) {
    Json requests = Json::object();
    for (const auto& [gpus, jobs] : lint.load.requests) requests[std::to_string(gpus)] = jobs;
    json["gpus"] = lint.load.gpus;
    json["window_s"] = lint.load.window_s;
    json["load_by_hour"] = lint.load.load_by_hour;
    json["peak_backlog_gpu_hours"] = lint.load.peak_backlog_gpu_hours;
    json["requests"] = requests;
    json["sizes"] = lint.load.sizes;
    json["median_s"] = lint.load.median_s;
    json["p90_s"] = lint.load.p90_s;
    json["max_s"] = lint.load.max_s;
    json["under_a_round"] = lint.load.under_a_round;
    json["eligible_pairs"] = lint.load.eligible_pairs;
  }
  return canonical(json) + "\n";
}

}  // namespace ymir
