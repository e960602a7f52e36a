// Task: one job's trainable state and the arithmetic of one optimizer step. A run binds one task,
// or two that share an adapter (spatial). Nothing here knows files, clocks or schedules of runs.
//
// All randomness is keyed by (seed, epoch, row, site), the learning rate is a function of the step:
// the state below and the cursor are all that a resumed job needs to go on bit for bit.
#pragma once

#include "ymir/core/job.h"
#include "ymir/tune/petl/adapter_torch.h"
#include "ymir/tune/petl/head_torch.h"
#include "ymir/tune/trainer/batch_torch.h"
#include "ymir/tune/trainer/lr_schedule.h"

namespace ymir {

// First and second moments of one flat block (AdamW).
struct Moments {
  at::Tensor m{}, v{};
};
Moments zero_moments(const ParameterLayout& layout);

// What does not change while a job lives.
struct TaskSetup {
  TaskKind kind = TaskKind::kClassify;
  int outputs = 0;
  TrainSpec train{};
  std::uint64_t seed = 0;
  LrSchedule schedule{};
  AdapterPlan adapter{};
  Head head{};
  kernels::Dropout hidden{}, attention{}, classifier{};
};

struct Task {
  TaskSetup setup{};
  at::Tensor adapter{};  // flat; both tasks of a spatial run hold the same tensor
  at::Tensor head{};
  Moments adapter_moments{};  // of this task's own gradient
  Moments head_moments{};
  std::int64_t step = 0;     // optimizer steps taken, the cursor of schedule and data
  std::int64_t updates = 0;  // of these, not skipped for a non-finite gradient
};

struct TaskGradient {
  at::Tensor adapter{}, head{};  // flat, of the mean loss over the step's rows
  double loss_sum = 0;
  std::int64_t rows = 0, tokens = 0;
  std::int64_t labels = 0;  // what the loss is the mean over: rows, or tokens to be learnt
  double norm = 0;          // of both blocks together, before clipping
};

// The gradient of one global batch. `epoch` keys the dropout. More than `micro_rows` rows (0: no
// limit) are taken in equal shares one after another: the same sum, divided once by the batch's
// number of valid rows or tokens. `recompute`: layers run again in the backward instead of keeping
// what they computed; the same bits for less memory and a third more time.
TaskGradient gradient_of(const Task& task, const Encoder& encoder, const Batch& batch,
                         std::uint32_t epoch, std::int64_t micro_rows = 0, bool recompute = false);
// Gradients of several jobs' batches in one pass over the backbone, each equal to what gradient_of
// gives for it alone: within rounding, and bit for bit within an ExactRows. Only for jobs of which
// cannot_share_a_pass says nothing.
struct TaskBatch {
  const Task& task;
  const Batch& batch;
  std::uint32_t epoch = 0;
};
std::vector<TaskGradient> gradients_of(std::span<const TaskBatch> parts, const Encoder& encoder);
// LoRA without magnitudes, no weights of the backbone, pooled results, the same dropout and the
// same lowest layer. Empty: yes; else why not.
std::string cannot_share_a_pass(const TaskSetup& a, const TaskSetup& b);
// Scales to the task's own clip norm. False: not finite, the update must be skipped.
bool clip(TaskGradient& gradient, double limit);

// One update of a single task. Advances `step`; `updates` unless the gradient is not finite.
bool update_task(Task& task, TaskGradient& gradient);

// One joint update: the shared adapter moves by the joint moments of g_A + g_B, each
// clipped by its own norm; each task's own moments follow its own gradient; heads are the tasks'
// own. A task whose gradient is not finite contributes nothing to this step.
struct JointState {
  Moments moments{};
  std::int64_t updates = 0;
};
bool update_pair(Task& a, Task& b, JointState& joint, TaskGradient& ga, TaskGradient& gb);

// In evaluation mode (no dropout): logits [R, outputs], of a language model [N, vocabulary].
at::Tensor logits_of(const TaskSetup& setup, const at::Tensor& adapter, const at::Tensor& head,
                     const Encoder& encoder, const EncoderInput& input);
// Of a language model, the logits of the token after each row [R, vocabulary].
at::Tensor next_logits(const TaskSetup& setup, const at::Tensor& adapter, const Encoder& encoder,
                       const EncoderInput& input);
// Sum of losses over a batch's rows, or tokens to be learnt, in evaluation mode.
struct LossSum {
  double sum = 0;
  std::int64_t labels = 0;
};
LossSum causal_loss_of(const TaskSetup& setup, const at::Tensor& adapter, const Encoder& encoder,
                       const Batch& batch);

}  // namespace ymir
