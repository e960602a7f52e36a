#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ymir/sim/profiles/pollux_profile.h"
#include "ymir/sim/trace/measured.h"

namespace ymir {

namespace {

constexpr double kRestartSeconds = 30;  // of every start in the published simulator
constexpr int kBatches = 24;            // looked at between the smallest and the largest

// Progress a second in one epoch; nothing where no table reaches.
std::optional<double> goodput(const PolluxApplication& app, int batch, std::span<const int> where,
                              int replicas, int epoch) {
  const PolluxSplit split = app.split(batch, replicas, PolluxAlone::kAboveInitialBatch);
  if (split.atomic < app.min_local || split.atomic > app.max_local) return std::nullopt;
  const int total = split.total(replicas);
  if (total < app.init_batch || total > app.max_batch) return std::nullopt;
  const auto time = app.step_time(where, split.atomic);
  if (!time) return std::nullopt;
  const double gain = PolluxApplication::gain(app.grad_stats(total, epoch),
                                              static_cast<double>(total) / app.init_batch);
  return gain / PolluxApplication::step_seconds(*time, split);
}

// Batches that grow geometrically from what the GPUs need at least to the largest.
std::vector<int> batches(const PolluxApplication& app, int replicas) {
  const double least = std::max(app.init_batch, app.min_local * replicas);
  std::vector<int> list;
  for (int i = 0; i < kBatches && least <= app.max_batch; ++i) {
    const double part = static_cast<double>(i) / (kBatches - 1);
    const int batch = static_cast<int>(std::lround(least * std::pow(app.max_batch / least, part)));
    if (list.empty() || list.back() != batch) list.push_back(batch);
  }
  return list;
}

// Seconds of the whole job; nothing when some epoch's look-up is in no table.
std::optional<double> whole_job(const PolluxApplication& app, const std::vector<int>& offered,
                                std::span<const int> where, int replicas) {
  double seconds = 0;
  for (int epoch = 0; epoch < app.last_epoch(); ++epoch) {
    double best = 0;
    for (const int batch : offered)
      best = std::max(best, goodput(app, batch, where, replicas, epoch).value_or(0));
    if (best <= 0) return std::nullopt;
    seconds += (app.progress_after(epoch + 1) - app.progress_after(epoch)) / best;
  }
  return seconds;
}

StepTimes table_of(const PolluxApplication& app, int batch, bool adaptive, double steps,
                   const TruthOptions& options) {
  StepTimes table{.rows = {},
                  .source = adaptive ? "pollux goodput at the best batch of each epoch"
                                     : "pollux goodput at the declared batch"};
  const int width = std::max(options.gpus_per_node, 1);
  const int all = std::max(options.nodes, 1) * width;
  const int most =
      std::min({all, adaptive ? app.max_batch / app.min_local : batch / app.min_local, 64});
  for (int gpus = 1; gpus <= most; ++gpus) {
    const bool offered = gpus <= 4 || gpus == 6 || gpus % 4 == 0;
    if (!offered) continue;
    const std::vector<int> where = packed_placement(gpus, width);
    const auto seconds =
        whole_job(app, adaptive ? batches(app, gpus) : std::vector{batch}, where, gpus);
    if (seconds) table.rows.push_back({gpus, static_cast<int>(where.size()), *seconds / steps});
  }
  return table;
}

}  // namespace

Result<Workload> pollux_workload(const Trace& trace, const std::string& profiles,
                                 const TruthOptions& options) {
  if (profiles.empty())
    return Error{ErrorCode::kInvalidArgument, "a pollux trace needs --profiles"};
  bool adaptive = false;
  for (const auto& [key, value] : options.settings) {
    if (key != "batch" || (value != "fixed" && value != "adaptive"))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("truth.{}={}: knows batch=fixed|adaptive", key, value)};
    adaptive = value == "adaptive";
  }
  YMIR_TRY_ASSIGN(const PolluxProfile profile, read_pollux_profile(profiles));
  Workload workload;
  std::map<std::pair<std::string, int>, StepTimes> tables;
  for (const TraceJob& given : trace.jobs) {
    const auto wrong = [&](const std::string& what) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}:{}: {}", trace.file, given.line, what)};
    };
    const PolluxApplication* app = profile.find(given.application);
    if (app == nullptr) return wrong("unknown application " + given.application);
    const int batch = static_cast<int>(given.batch_size);
    WorkloadJob job{.name = given.name, .at = given.submission_s};
    job.backbone = job.task = given.application;
    job.steps = std::max<std::int64_t>(1, std::llround(app->progress_after(app->last_epoch())));
    job.steps_per_epoch = job.max_steps = job.steps;  // evaluated once, at its end
    const auto [table, fresh] = tables.try_emplace({given.application, batch});
    if (fresh)
      table->second = table_of(*app, batch, adaptive, static_cast<double>(job.steps), options);
    job.table = table->second;
    if (job.table.rows.empty()) return wrong("no step time of this batch is in the tables");
    job.step_time = job.table.rows.front().seconds;
    job.min_gpus = job.table.rows.front().gpus;
    job.max_gpus = job.table.rows.back().gpus;
    job.gpus = std::clamp(given.gpus, job.min_gpus, job.max_gpus);
    job.start_s = kRestartSeconds;
    job.share = false;
    workload.jobs.push_back(std::move(job));
  }
  return workload;
}

}  // namespace ymir
