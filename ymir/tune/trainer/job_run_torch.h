// JobRun: one job's side of a run: its task, data, progress and files. Runs (run_torch.h) drive one
// or two of them. Everything here happens at optimizer-step boundaries.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ymir/tune/data/order.h"
#include "ymir/tune/model/backbone_torch.h"
#include "ymir/tune/session.h"
#include "ymir/tune/trainer/checkpoint_torch.h"
#include "ymir/tune/trainer/frozen_outputs_torch.h"
#include "ymir/tune/trainer/job_data_torch.h"
#include "ymir/tune/trainer/metrics_file.h"
#include "ymir/tune/trainer/progress.h"
#include "ymir/tune/trainer/task_torch.h"

namespace ymir {

// What all jobs of a run share. References outlive the run.
struct RunContext {
  const Backbone& backbone;
  const Encoder& encoder;  // of the run's precision
  RunId run{};
  Mode mode = Mode::kNormal;
  std::string numerics{};
  std::string row_numerics{};  // what of it outputs of frozen layers depend on
  const RunReports& reports;
  const StopFlag& stop;
  FrozenOutputsCache frozen{};  // 0 bytes: nothing is kept
  bool together = false;        // several jobs of their own in one pass
};

struct JobRun {
  TaskOrder order{};
  std::shared_ptr<const JobData> data{};
  EvaluationRows train{}, validation{};  // of data, begun at the lowest trained layer if that helps
  std::string settings_hash{};
  Task task{};
  Progress progress{};
  BestTensors best{};
  std::optional<Moments> saved_joint{};  // of the checkpoint it resumed from
  bool recompute = false;  // memory ran out with one row: layers run again in the backward
  std::unique_ptr<BatchOrder> batches{};
  std::int64_t per_epoch = 1, total = 1, interval = 1, points = 1;
  std::unique_ptr<MetricsFile> metrics{};
  JobId partner{};
  std::vector<double> step_seconds{};   // of this run, for the step-time table
  std::vector<LossPoint> run_losses{};  // of this run
  std::vector<Evaluation> run_evaluations{};
  std::vector<std::string> saved_paths{};  // checkpoints of this run; the two newest are kept
  double saved_at = 0;                     // train_seconds of the newest checkpoint
  std::int64_t saved_step = -1;            // its step, -1: none by this run
};

// What errors call it: by its name, else its id.
std::string title_of(const TaskOrder& order);

// From its checkpoint, from a source's adapter, or from the seed.
Result<std::unique_ptr<JobRun>> prepare_job(const TaskOrder& order,
                                            std::shared_ptr<const JobData> data,
                                            const RunContext& context);

// The gradient of the batch that the job's step stands at. When memory runs out the step is taken
// again in halves, down to one row: the same global batch; then with layers that
// run again in the backward. kExhausted: one row does not fit.
Result<TaskGradient> next_gradient(JobRun& job, const RunContext& context);
// Those of several jobs in one pass; one after another when memory runs out.
Result<std::vector<TaskGradient>> next_gradients(const std::vector<std::unique_ptr<JobRun>>& jobs,
                                                 const RunContext& context);
// Books a step that update_task or update_pair has made: loss, time, reports.
Result<> book_step(JobRun& job, const RunContext& context, const TaskGradient& gradient,
                   bool updated, double seconds);
// Evaluates when the step asks for it; may set progress.ended. `forced`: without being asked, and
// without counting for stop rules; the result is only returned.
Result<std::optional<Evaluation>> evaluate_job(JobRun& job, const RunContext& context, bool forced);

// Writes a checkpoint and reports it. `joint`: the pair's moments and the mark of this moment.
Result<> checkpoint_job(JobRun& job, const RunContext& context, const JointState* joint,
                        const std::string& mark);
// Final checkpoint, export, test score, JobFinished. The task is not changed after this began.
Result<> finish_job(JobRun& job, const RunContext& context);

// One measurement of this run's steps; empty with fewer than 5.
std::optional<StepTiming> step_timing(const JobRun& job, const RunContext& context);

}  // namespace ymir
