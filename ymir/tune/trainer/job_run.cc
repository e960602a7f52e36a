#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <new>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/leftovers.h"
#include "ymir/base/log.h"
#include "ymir/core/codec.h"
#include "ymir/tune/model/gemm.h"
#include "ymir/tune/model/plain_torch.h"
#include "ymir/tune/trainer/export_torch.h"
#include "ymir/tune/trainer/job_run_torch.h"
#include "ymir/tune/trainer/task_vector_torch.h"

namespace ymir {
namespace {

constexpr std::size_t kKeptCheckpoints = 2;
constexpr int kSkippedLimit = 3;  // updates in a row without a finite gradient: diverged

// Of everything that decides the course of training; a checkpoint of other settings is refused.
std::string settings_hash_of(const JobSpec& spec, const JobData& data, const ModelFiles& model) {
  JobSpec reduced;
  reduced.kind = spec.kind;
  reduced.method = spec.method;
  reduced.train = spec.train;
  reduced.seed = spec.seed;
  reduced.stop.max_epochs = spec.stop.max_epochs;
  reduced.stop.max_steps = spec.stop.max_steps;
  return sha256(encode(reduced) + data.key + model.key);
}

Result<TaskSetup> setup_of(const JobSpec& spec, const JobData& data, const Backbone& backbone,
                           std::int64_t total) {
  TaskSetup setup;
  if (spec.kind == TaskKind::kLanguageModel && !backbone.encoder.output.weight.defined())
    return Error{ErrorCode::kInvalidArgument,
                 "the model has no output layer for a language model: " + backbone.files.folder};
  if (std::ranges::any_of(spec.metrics, needs_answers) && !data.answers.has_prompts)
    return Error{ErrorCode::kInvalidArgument,
                 "metrics of answers need conversations (data.format messages, alpaca, sharegpt)"};
  setup.kind = spec.kind;
  setup.outputs = data.outputs;
  setup.train = spec.train;
  setup.seed = spec.seed;
  YMIR_TRY_ASSIGN(setup.schedule, make_schedule(spec.train, total));
  YMIR_TRY_ASSIGN(setup.adapter, make_adapter(backbone.encoder, spec.method));
  setup.head =
      spec.kind == TaskKind::kLanguageModel ? no_head() : make_head(backbone.encoder, data.outputs);
  const ModelConfig& config = backbone.files.config;
  const auto dropout = [&](double by_config) {
    return kernels::make_dropout(spec.train.dropout >= 0 ? spec.train.dropout : by_config);
  };
  setup.hidden = dropout(config.hidden_dropout);
  setup.attention = dropout(config.attention_dropout);
  setup.classifier = dropout(config.classifier_dropout);
  return setup;
}

Moments on(const Moments& moments, at::Device device) {
  return {moments.m.to(device), moments.v.to(device)};
}

std::uint32_t current_epoch(const JobRun& job) {
  return static_cast<std::uint32_t>(job.task.step / job.per_epoch);
}

// What CUDA's allocator throws, the C++ library's, and the CPU allocator's plain error.
bool is_out_of_memory(const std::exception& e) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
         std::string_view(e.what()).find("can't allocate memory") != std::string_view::npos;
}

std::function<bool()> until_stop_now(const RunContext& context) {
  return [&stop = context.stop] { return stop() != StopWish::kStopNow; };
}

// train.head_start: fit. The head of the features as they are now, part of the
// training time. A head that can't be fitted stays random, told in the log.
Result<> fit_head_first(JobRun& job, const RunContext& context) {
  if (job.order.spec.train.head_start != "fit") return Ok{};
  constexpr std::int64_t kMostRows = 2000;
  const auto start = std::chrono::steady_clock::now();
  const TaskSetup& setup = job.task.setup;
  const Trained trained = bind(setup.adapter, job.task.adapter);
  const Encoder model = with_weights(context.encoder, trained.weights);
  const VectorTask rows_task{model,
                             setup.head,
                             job.data->train,
                             setup.kind,
                             setup.outputs,
                             context.backbone.files.key,
                             until_stop_now(context)};
  const auto rows =
      chosen_rows(setup.seed, static_cast<std::int64_t>(job.data->train.lengths.size()), kMostRows);
  YMIR_TRY_ASSIGN(const PooledRows pooled,
                  pooled_rows(rows_task, trained.slots, job.task.head, rows));
  const auto fitted = fitted_head(rows_task, pooled, job.task.head, 1e-3);
  if (fitted) {
    job.task.head = fitted->values;
  } else {
    log::warning("the head of {} starts at random: {}", to_string(job.order.job),
                 fitted.error().message);
  }
  job.progress.train_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return Ok{};
}

Result<> start_fresh(JobRun& job, const RunContext& context) {
  const TaskSetup& setup = job.task.setup;
  const at::Device device = device_of(context.encoder);
  job.task.adapter =
      initial_adapter(setup.adapter, context.backbone.encoder, setup.seed).to(device);
  job.task.head = initial_head(setup.head, setup.seed).to(device);
  job.task.adapter_moments = on(zero_moments(setup.adapter.layout), device);
  job.task.head_moments = on(zero_moments(setup.head.layout), device);
  if (!job.order.source) return fit_head_first(job, context);
  YMIR_TRY_ASSIGN(
      job.task.adapter,
      adapter_from_source(setup.adapter, context.backbone.encoder, job.order.source_adapter,
                          job.order.source_hash, job.order.strength, setup.seed));
  job.task.adapter = job.task.adapter.to(device);
  job.progress.lineage = Lineage{job.order.source, job.order.source_hash, job.order.strength};
  job.partner = job.order.source;
  log::debug("run {}: {} starts from {}", to_string(context.run), to_string(job.order.job),
             to_string(job.order.source));
  return fit_head_first(job, context);
}

Result<> resume(JobRun& job, const RunContext& context) {
  YMIR_TRY_ASSIGN(SavedTask saved, load_checkpoint(job.order.checkpoint, job.order.checkpoint_hash,
                                                   job.settings_hash, job.task.setup));
  if (saved.identity.numerics != context.numerics)
    log::warning("{} goes on under other numerics: {}, was {}", to_string(job.order.job),
                 context.numerics, saved.identity.numerics);
  const at::Device device = device_of(context.encoder);
  job.progress = std::move(saved.progress);
  job.task.adapter = saved.adapter.to(device);
  job.task.head = saved.head.to(device);
  job.task.adapter_moments = on(saved.adapter_moments, device);
  job.task.head_moments = on(saved.head_moments, device);
  job.task.step = job.progress.step;
  job.task.updates = job.progress.updates;
  job.best = saved.best;
  if (job.best.adapter.defined())
    job.best = {saved.best.adapter.to(device), saved.best.head.to(device)};
  if (saved.joint) job.saved_joint = on(*saved.joint, device);
  job.saved_at = job.progress.train_seconds;
  job.saved_step = job.progress.step;
  if (job.progress.lineage) job.partner = job.progress.lineage->source;
  return Ok{};
}

// Where a prefix of layers is frozen, its outputs are kept (frozen_outputs_torch.h).
void begin_above_frozen(JobRun& job, const RunContext& context) {
  job.train = job.data->train;
  job.validation = job.data->validation;
  if (context.frozen.max_bytes == 0 || !kernels::has_gemm() || is_plain(job.task.adapter)) return;
  const Trained trained = bind(job.task.setup.adapter, job.task.adapter);
  const int layers = context.encoder.shape.layers;
  const int frozen = lowest_trained(trained.slots, &trained.weights, layers);
  if (frozen < 1 || frozen >= layers) return;
  const std::string key =
      fmt::format("{} {} {}", context.backbone.files.key, context.row_numerics, job.data->key);
  const auto begun = [&](const EvaluationRows& rows, const char* name) {
    auto outputs = context.frozen.open(key + name, frozen, context.encoder, rows);
    if (!outputs) log::warning("frozen layers are run in every step: {}", outputs.error().message);
    return outputs ? with_frozen_outputs(rows, *std::move(outputs), context.encoder) : rows;
  };
  job.train = begun(job.train, " train");
  // Answers are written token by token, from other inputs than the rows.
  if (job.task.setup.kind != TaskKind::kLanguageModel)
    job.validation = begun(job.validation, " validation");
  log::debug("{}: {} frozen layers are run once a row", to_string(job.order.job), frozen);
}

Batch next_batch(const JobRun& job) {
  const auto index = static_cast<std::uint32_t>(job.task.step % job.per_epoch);
  return job.train.batch(job.batches->batch(current_epoch(job), index));
}

double epoch_of(const JobRun& job) {
  return static_cast<double>(job.task.step) / static_cast<double>(job.per_epoch);
}

Result<std::map<std::string, double>> score(const JobRun& job, const RunContext& context,
                                            const at::Tensor& adapter, const at::Tensor& head,
                                            const EvaluationRows& rows) {
  const auto go_on = until_stop_now(context);
  YMIR_TRY_ASSIGN(Outcomes outcomes,
                  evaluate_rows(job.task.setup, adapter, head, context.encoder, rows, go_on));
  const JobSpec& spec = job.order.spec;
  if (std::ranges::any_of(spec.metrics, needs_answers) || needs_answers(spec.target.metric)) {
    YMIR_TRY_ASSIGN(Answers answers, write_answers(job.task.setup, adapter, context.encoder, rows,
                                                   job.data->answers, spec.answer_length, go_on));
    outcomes.written = std::move(answers.written);
    outcomes.wanted = std::move(answers.wanted);
  }
  return compute_metrics(outcomes);
}

SavedTask saved_state(const JobRun& job, const RunContext& context, const JointState* joint,
                      const std::string& mark) {
  SavedTask saved;
  saved.identity = {job.order.job, context.run,       context.mode,
                    job.partner,   job.settings_hash, context.numerics};
  saved.progress = job.progress;
  saved.progress.joint_mark = mark;
  saved.progress.joint_updates = joint != nullptr ? joint->updates : 0;
  // Files are written from the CPU's memory; no copy where it lies there already.
  saved.adapter = job.task.adapter.cpu();
  saved.head = job.task.head.cpu();
  saved.adapter_moments = on(job.task.adapter_moments, at::kCPU);
  saved.head_moments = on(job.task.head_moments, at::kCPU);
  if (job.best.adapter.defined()) saved.best = {job.best.adapter.cpu(), job.best.head.cpu()};
  if (joint != nullptr) saved.joint = on(joint->moments, at::kCPU);
  return saved;
}

ExportRequest export_of(const JobRun& job, const RunContext& context, const std::string& folder) {
  ExportRequest request;
  request.folder = folder;
  request.spec = job.order.spec;
  request.job = job.order.job;
  request.mode = context.mode;
  request.partner = job.partner;
  request.labels = job.data->labels;
  request.data_key = job.data->key;
  request.backbone = context.backbone.files.key;
  request.max_length = job.data->max_length;
  request.numerics = context.numerics;
  request.progress = job.progress;
  const bool has_best = job.best.adapter.defined();
  request.adapter = has_best ? job.best.adapter : job.task.adapter;
  request.head = has_best ? job.best.head : job.task.head;
  return request;
}

// The best adapter so far, once per best: sources of temporal runs are read from here.
Result<ExportedAdapter> export_best(const JobRun& job, const RunContext& context) {
  const std::string all = job.order.folder + "/adapters";
  remove_leftovers(all, "step-");
  const std::string folder = fmt::format("{}/step-{}", all, job.progress.best->step);
  return export_adapter(export_of(job, context, folder), job.task.setup, context.encoder,
                        job.data->validation);
}

const Evaluation* best_evaluation(const Progress& progress) {
  for (const Evaluation& evaluation : progress.evaluations)
    if (progress.best && evaluation.step == progress.best->step) return &evaluation;
  return progress.evaluations.empty() ? nullptr : &progress.evaluations.back();
}

}  // namespace

Result<std::unique_ptr<JobRun>> prepare_job(const TaskOrder& order,
                                            std::shared_ptr<const JobData> data,
                                            const RunContext& context) {
  auto job = std::make_unique<JobRun>();
  job->order = order;
  job->data = std::move(data);
  const auto rows = static_cast<std::uint32_t>(job->data->train.lengths.size());
  const JobSpec& spec = order.spec;
  job->batches =
      std::make_unique<BatchOrder>(spec.seed, rows, static_cast<std::uint32_t>(spec.train.batch));
  job->per_epoch = job->batches->batches_per_epoch();
  job->total = total_steps(spec, job->per_epoch);
  job->interval = evaluation_interval(spec, job->per_epoch);
  job->points = loss_interval(job->interval);
  job->settings_hash = settings_hash_of(spec, *job->data, context.backbone.files);
  YMIR_TRY_ASSIGN(job->task.setup, setup_of(spec, *job->data, context.backbone, job->total));
  if (order.checkpoint.empty()) {
    YMIR_TRY(start_fresh(*job, context));
  } else {
    YMIR_TRY(resume(*job, context));
  }
  begin_above_frozen(*job, context);
  YMIR_TRY(make_folders(order.folder));
  YMIR_TRY_ASSIGN(MetricsFile metrics,
                  MetricsFile::open(order.folder + "/metrics.jsonl", job->task.step));
  job->metrics = std::make_unique<MetricsFile>(std::move(metrics));
  return job;
}

std::string title_of(const TaskOrder& order) {
  return order.spec.name.empty() ? to_string(order.job) : order.spec.name;
}

Result<TaskGradient> next_gradient(JobRun& job, const RunContext& context) {
  const Batch batch = next_batch(job);
  std::int64_t& micro_rows = job.progress.micro_rows;
  while (true) {
    try {
      return gradient_of(job.task, context.encoder, batch, current_epoch(job), micro_rows,
                         job.recompute);
    } catch (const std::exception& e) {
      if (!is_out_of_memory(e)) throw;
      const std::int64_t rows = micro_rows > 0 ? micro_rows : batch.num_rows();
      if (rows <= 1 && !job.recompute) {
        job.recompute = true;
        log::warning("{}: memory ran out in step {} with one row; layers run again in the backward",
                     to_string(job.order.job), job.task.step + 1);
        continue;
      }
      if (rows <= 1)
        return Error{ErrorCode::kExhausted,
                     fmt::format("does_not_fit: one row of step {} needs more memory than there is",
                                 job.task.step + 1)};
      micro_rows = (rows + 1) / 2;
      log::warning("{}: memory ran out in step {}; goes on with {} rows at once, same batch",
                   to_string(job.order.job), job.task.step + 1, micro_rows);
    }
  }
}

Result<std::vector<TaskGradient>> next_gradients(const std::vector<std::unique_ptr<JobRun>>& jobs,
                                                 const RunContext& context) {
  const bool fits = std::all_of(jobs.begin(), jobs.end(), [](const auto& job) {
    return job->progress.micro_rows == 0 && !job->recompute;
  });
  if (fits) {
    std::vector<Batch> batches;
    for (const auto& job : jobs) batches.push_back(next_batch(*job));
    std::vector<TaskBatch> parts;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      parts.push_back({jobs[i]->task, batches[i], current_epoch(*jobs[i])});
    try {
      return gradients_of(parts, context.encoder);
    } catch (const std::exception& e) {
      if (!is_out_of_memory(e)) throw;
      log::warning("memory ran out for {} jobs in one pass; this step takes them in turn",
                   jobs.size());
    }
  }
  std::vector<TaskGradient> gradients;
  for (const auto& job : jobs) {
    YMIR_TRY_ASSIGN(TaskGradient gradient, next_gradient(*job, context));
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

Result<> book_step(JobRun& job, const RunContext& context, const TaskGradient& gradient,
                   bool updated, double seconds) {
  Progress& progress = job.progress;
  const double lr = job.task.setup.schedule.at(job.task.step - 1);
  progress.step = job.task.step;
  progress.updates = job.task.updates;
  progress.samples += gradient.rows;
  progress.tokens += gradient.tokens;
  progress.train_seconds += seconds;
  job.step_seconds.push_back(seconds);
  progress.skipped_in_a_row = updated ? 0 : progress.skipped_in_a_row + 1;
  if (progress.skipped_in_a_row >= kSkippedLimit) progress.ended = "failed";
  const std::size_t known = progress.losses.size();
  note_loss(progress, gradient.loss_sum, gradient.labels, job.points);
  if (progress.losses.size() > known) job.run_losses.push_back(progress.losses.back());
  const double loss =
      gradient.loss_sum / static_cast<double>(std::max<std::int64_t>(1, gradient.labels));
  YMIR_TRY(job.metrics->write(
      StepLine{progress.step, epoch_of(job), progress.samples, loss, lr, progress.train_seconds}));
  if (context.reports.step)
    context.reports.step(
        {job.order.job, context.run, progress.step, job.total, loss, lr, gradient.tokens, seconds});
  return Ok{};
}

Result<std::optional<Evaluation>> evaluate_job(JobRun& job, const RunContext& context,
                                               bool forced) {
  Progress& progress = job.progress;
  const bool due = evaluation_due(progress.step, job.interval, job.total);
  if ((!due && !forced) || !progress.ended.empty()) return std::optional<Evaluation>{};
  Evaluation evaluation;
  YMIR_TRY_ASSIGN(evaluation.metrics,
                  score(job, context, job.task.adapter, job.task.head, job.validation));
  evaluation.step = progress.step;
  evaluation.epoch = epoch_of(job);
  evaluation.samples = progress.samples;
  evaluation.train_time = Seconds(progress.train_seconds);
  if (progress.evaluation_rows > 0)
    evaluation.train_loss =
        progress.evaluation_loss / static_cast<double>(progress.evaluation_rows);
  if (forced) return std::optional(evaluation);
  job.run_evaluations.push_back(evaluation);
  YMIR_TRY(job.metrics->write(evaluation, "validation"));
  EpochEvaluated event{job.order.job, context.run, evaluation, progress.losses};
  if (note_evaluation(progress, job.order.spec, evaluation, job.total))
    job.best = {job.task.adapter.clone(), job.task.head.clone()};
  context.reports.event(event);
  if (const auto timing = step_timing(job, context); timing && !context.together)
    context.reports.event(StepTimed{job.order.job, context.run, *timing});
  return std::optional(evaluation);
}

Result<> checkpoint_job(JobRun& job, const RunContext& context, const JointState* joint,
                        const std::string& mark) {
  YMIR_TRY_ASSIGN(
      const CheckpointPlace place,
      save_checkpoint(job.order.folder, saved_state(job, context, joint, mark), job.task.setup));
  CheckpointCommitted event;
  event.job = job.order.job;
  event.run = context.run;
  event.step = job.progress.step;
  event.path = place.path;
  event.hash = place.hash;
  if (job.best.adapter.defined()) {
    YMIR_TRY_ASSIGN(const ExportedAdapter adapter, export_best(job, context));
    event.adapter = adapter.folder;
    event.adapter_hash = adapter.hash;
  }
  YMIR_TRY(job.metrics->flush());
  job.saved_at = job.progress.train_seconds;
  job.saved_step = job.progress.step;
  context.reports.event(event);
  job.saved_paths.push_back(place.path);
  if (job.saved_paths.size() > kKeptCheckpoints) {
    std::error_code ignored;
    std::filesystem::remove_all(job.saved_paths.front(), ignored);
    job.saved_paths.erase(job.saved_paths.begin());
  }
  return Ok{};
}

Result<> finish_job(JobRun& job, const RunContext& context) {
  // Frozen: what is saved, exported and scored below are these values, whatever happens to a
  // partner's run.
  job.task.adapter = job.task.adapter.clone();
  job.task.head = job.task.head.clone();
  YMIR_TRY(checkpoint_job(job, context, nullptr, ""));
  JobFinished event;
  event.job = job.order.job;
  event.run = context.run;
  event.reason = job.progress.ended;
  event.step = job.progress.step;
  event.target_reached = job.progress.target_reached;
  if (job.progress.ended == "failed") {
    event.outcome = Outcome::kFailed;
    event.code = "diverged";
    event.text = fmt::format("{} updates in a row had no finite gradient, the last at step {}",
                             kSkippedLimit, job.progress.step);
    context.reports.event(event);
    return Ok{};
  }
  YMIR_TRY_ASSIGN(const ExportedAdapter adapter,
                  export_adapter(export_of(job, context, job.order.folder + "/adapter"),
                                 job.task.setup, context.encoder, job.data->validation));
  event.adapter = adapter.folder;
  event.adapter_hash = adapter.hash;
  if (const Evaluation* best = best_evaluation(job.progress)) event.metrics = best->metrics;
  if (!job.data->test.lengths.empty()) {
    const ExportRequest last = export_of(job, context, "");
    Evaluation test;
    YMIR_TRY_ASSIGN(test.metrics, score(job, context, last.adapter, last.head, job.data->test));
    test.step = job.progress.step;
    test.epoch = epoch_of(job);
    YMIR_TRY(job.metrics->write(test, "test"));
    for (const auto& [name, value] : test.metrics) event.metrics["test_" + name] = value;
  }
  if (job.order.spec.stop.require_target && !job.progress.target_reached) {
    event.outcome = Outcome::kFailed;
    event.code = "target_not_reached";
  }
  YMIR_TRY(job.metrics->flush());
  context.reports.event(event);
  return Ok{};
}

}  // namespace ymir
