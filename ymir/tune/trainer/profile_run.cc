#include "ymir/tune/trainer/profile_run_torch.h"

#include <ATen/ops/lerp.h>
#include <sys/resource.h>

#include <chrono>

#include "ymir/base/log.h"
#include "ymir/tune/trainer/export_torch.h"
#include "ymir/tune/trainer/logme.h"
#include "ymir/tune/trainer/task_vector_torch.h"

namespace ymir {
namespace {

constexpr std::int64_t kProbeRows = 512;
constexpr std::uint64_t kProbeSeed = 20260102;

std::int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

Result<double> evidence(const VectorTask& task, const PooledRows& pooled) {
  const std::int64_t width = task.encoder.shape.hidden;
  const Features features{pooled.features,
                          static_cast<std::int64_t>(pooled.features.size()) / width, width};
  if (task.kind == TaskKind::kClassify) return logme(features, pooled.classes, task.outputs);
  return logme(features, pooled.values);
}

// The source's adapter, times its strength, on this job's rows.
Result<double> evidence_with(const VectorTask& task, const TaskOrder& probe,
                             std::span<const std::uint32_t> rows) {
  YMIR_TRY_ASSIGN(const LoadedAdapter source, load_adapter(probe.source_adapter, task.encoder));
  const AdapterPlan& plan = source.setup.adapter;
  at::Tensor values = source.adapter.clone();
  for (const AdapterPlan::LoraPlace& place : plan.lora)
    plan.layout.view(values, place.b).mul_(probe.strength);
  if (plan.lora.empty())  // whole values: so far on the way from this job's start
    values = at::lerp(initial_adapter(plan, task.encoder, kProbeSeed).to(values.device()), values,
                      probe.strength);
  const Trained trained = bind(plan, values);
  const Encoder model = with_weights(task.encoder, trained.weights);
  const VectorTask adapted{model,        task.head,      task.rows, task.kind,
                           task.outputs, task.model_key, task.go_on};
  YMIR_TRY_ASSIGN(const PooledRows pooled,
                  pooled_rows(adapted, trained.slots,
                              initial_head(task.head, kProbeSeed).to(values.device()), rows));
  return evidence(task, pooled);
}

Result<std::vector<Probe>> probe_sources(const VectorTask& task,
                                         const std::vector<TaskOrder>& sources) {
  std::vector<Probe> probes;
  if (sources.empty()) return probes;
  YMIR_TRY(has_vector(task.kind));
  const auto rows =
      chosen_rows(kProbeSeed, static_cast<std::int64_t>(task.rows.lengths.size()), kProbeRows);
  YMIR_TRY_ASSIGN(const PooledRows plain, pooled_rows(task, no_slots(task.encoder.shape),
                                                      initial_head(task.head, kProbeSeed), rows));
  YMIR_TRY_ASSIGN(const double without, evidence(task, plain));
  for (const TaskOrder& source : sources) {
    const auto with = evidence_with(task, source, rows);
    if (!with && with.error().code == ErrorCode::kUnavailable) return with.error();
    if (!with) {
      log::warning("no probe of {}: {}", to_string(source.source), with.error().message);
      continue;
    }
    probes.push_back(
        {source.source, source.strength, *with - without, static_cast<std::int64_t>(rows.size())});
  }
  return probes;
}

}  // namespace

Result<Profile> measure_profile(JobRun& job, const RunContext& context,
                                const ProfileRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  Profile profile;
  profile.losses = job.run_losses;
  profile.evaluations = job.run_evaluations;
  const bool evaluated =
      !job.run_evaluations.empty() && job.run_evaluations.back().step == job.progress.step;
  if (!evaluated) {
    YMIR_TRY_ASSIGN(const auto evaluation, evaluate_job(job, context, true));
    if (evaluation) profile.evaluations.push_back(*evaluation);
  }
  if (const auto timing = step_timing(job, context)) profile.step_times.push_back(*timing);
  // In f32 whatever the run's precision: vectors of all jobs on a backbone must compare.
  const VectorTask task{context.backbone.encoder,
                        job.task.setup.head,
                        job.data->train,
                        job.task.setup.kind,
                        job.task.setup.outputs,
                        context.backbone.files.key,
                        [&context] { return context.stop() != StopWish::kStopNow; }};
  if (request.want_vector) {
    auto vector = task_vector(task, {});
    if (!vector && vector.error().code == ErrorCode::kUnavailable) return vector.error();
    if (vector) {
      profile.vector = *std::move(vector);
    } else {
      log::warning("no task vector of {}: {}", to_string(job.order.job), vector.error().message);
    }
  }
  auto probes = probe_sources(task, request.probes);
  if (!probes && probes.error().code == ErrorCode::kUnavailable) return probes.error();
  if (probes) {
    profile.probes = *std::move(probes);
  } else {
    log::warning("no probes for {}: {}", to_string(job.order.job), probes.error().message);
  }
  profile.peak_memory = peak_memory();
  profile.seconds =
      Seconds(request.seconds +
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return profile;
}

}  // namespace ymir
