#include "ymir/sim/trace/workload_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/sim/trace/measured.h"

namespace ymir {
namespace {

Error wrong(const Trace& trace, const TraceJob& job, const std::string& what) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}:{}: {}", trace.file, job.line, what)};
}

// A job of that length on the GPUs asked for and on no other number: ten epochs of steps of about a
// second, so that an evaluation falls on its end.
WorkloadJob rigid(const TraceJob& given, double seconds) {
  constexpr std::int64_t kEpochs = 10;
  WorkloadJob job{.name = given.name, .at = given.submission_s};
  job.backbone = given.application.empty() ? "rigid" : given.application;
  job.task = "rigid";
  job.gpus = job.min_gpus = job.max_gpus = given.gpus;
  job.steps_per_epoch =
      std::clamp<std::int64_t>(std::llround(seconds / kEpochs), 1, std::int64_t{1'000'000});
  job.steps = job.max_steps = kEpochs * job.steps_per_epoch;
  job.scaling = 1;
  job.step_time = seconds / static_cast<double>(job.steps) * given.gpus;
  job.share = false;
  return job;
}

// Steps a second of each type of job on each number of GPUs (gavel).
using Throughputs = std::map<std::pair<std::string, int>, double>;

Result<Throughputs> read_throughputs(const std::string& profiles) {
  if (profiles.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "a gavel trace counts steps: --profiles must name a folder with throughputs.csv "
                 "(columns job_type,gpus,steps_per_s)"};
  const std::string file = profiles + "/throughputs.csv";
  YMIR_TRY_ASSIGN(const std::string text, read_file(file));
  CsvRows rows(file, text);
  const auto at = rows.columns({"job_type", "gpus", "steps_per_s"});
  Throughputs table;
  while (rows.next()) {
    const std::string type = rows.name(at[0]);
    const int gpus = static_cast<int>(rows.whole(at[1], 1, 100'000));
    table[{type, gpus}] = rows.number(at[2], 1e-9, 1e9);
  }
  YMIR_TRY(rows.ok());
  return table;
}

Result<Workload> gavel_workload(const Trace& trace, const std::string& profiles) {
  YMIR_TRY_ASSIGN(const Throughputs table, read_throughputs(profiles));
  Workload workload;
  for (const TraceJob& job : trace.jobs) {
    const auto speed = table.find({job.application, job.gpus});
    if (speed == table.end())
      return wrong(trace, job,
                   fmt::format("no throughput of `{}` on {} GPUs in the profiles", job.application,
                               job.gpus));
    workload.jobs.push_back(rigid(job, static_cast<double>(job.steps) / speed->second));
  }
  return workload;
}

Result<Workload> rigid_workload(const Trace& trace) {
  Workload workload;
  for (const TraceJob& job : trace.jobs) {
    if (!(job.duration_s > 0)) return wrong(trace, job, "how long it runs is not known");
    workload.jobs.push_back(rigid(job, job.duration_s));
  }
  return workload;
}

// The cluster: as told, else that of the trace where its nodes are alike.
Result<> set_cluster(const Trace& trace, const TruthOptions& options, Workload& workload) {
  workload.nodes = options.nodes;
  workload.gpus_per_node = options.gpus_per_node;
  if (!trace.nodes.empty() && options.nodes == 0) {
    workload.nodes = static_cast<int>(trace.nodes.size());
    const int gpus = trace.nodes.front().gpus;
    if (std::ranges::all_of(trace.nodes, [&](const TraceNode& n) { return n.gpus == gpus; }))
      workload.gpus_per_node = options.gpus_per_node > 0 ? options.gpus_per_node : gpus;
  }
  if (workload.nodes > 0 && workload.gpus_per_node > 0) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               "the trace names no cluster of equal nodes: give --nodes and --gpus-per-node"};
}

}  // namespace

Result<Workload> workload_of(const Trace& trace, const std::string& profiles,
                             const TruthOptions& options) {
  Result<Workload> made = Error{ErrorCode::kInvalidArgument,
                                "no truth is known for jobs of the format " + trace.format};
  if (trace.format == "titan")
    made = titan_workload(trace, profiles, options);
  else if (trace.format == "pollux")
    made = pollux_workload(trace, profiles, options);
  else if (trace.format == "gavel")
    made = gavel_workload(trace, profiles);
  else if (trace.format == "philly" || trace.format == "tiresias" ||
           trace.format == "alibaba2023" || trace.format == "swf")
    made = rigid_workload(trace);
  if (!made) return std::move(made).error();
  YMIR_TRY(set_cluster(trace, options, *made));
  std::ranges::stable_sort(made->jobs, {}, &WorkloadJob::at);
  return std::move(*made);
}

}  // namespace ymir
