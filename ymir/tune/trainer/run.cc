#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ymir/base/log.h"
#include "ymir/tune/trainer/run_torch.h"

namespace ymir {
namespace {

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The moment that both checkpoints of a pair belong to.
std::string mark_of(const RunMembers& members, const RunContext& context) {
  std::string mark = fmt::format("{:x}", context.run.value);
  for (const auto& job : members.jobs)
    mark += fmt::format(":{}@{}", job->order.job.value, job->task.step);
  return mark;
}

bool same_slots(const AdapterPlan& a, const AdapterPlan& b) {
  const auto &left = a.layout.infos(), &right = b.layout.infos();
  const auto same_scale = [](const AdapterPlan::LoraPlace& x, const AdapterPlan::LoraPlace& y) {
    return x.scale == y.scale;
  };
  return a.method.kind == b.method.kind &&
         std::equal(a.lora.begin(), a.lora.end(), b.lora.begin(), b.lora.end(), same_scale) &&
         std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const ParameterInfo& x, const ParameterInfo& y) {
                      return x.name == y.name && x.shape == y.shape;
                    });
}

// Every job's next step from one pass; its time is each one's by tokens.
Result<> take_step_together(RunMembers& members, const RunContext& context) {
  const Clock clock;
  YMIR_TRY_ASSIGN(auto gradients, next_gradients(members.jobs, context));
  std::vector<bool> updated;
  double tokens = 0;
  for (std::size_t i = 0; i < members.jobs.size(); ++i) {
    updated.push_back(update_task(members.jobs[i]->task, gradients[i]));
    tokens += static_cast<double>(gradients[i].tokens);
  }
  const double seconds = clock.seconds();
  for (std::size_t i = 0; i < members.jobs.size(); ++i)
    YMIR_TRY(book_step(*members.jobs[i], context, gradients[i], updated[i],
                       seconds * static_cast<double>(gradients[i].tokens) / tokens));
  return Ok{};
}

Result<> take_step(RunMembers& members, const RunContext& context) {
  if (!members.pair && members.jobs.size() > 1) return take_step_together(members, context);
  const Clock clock;
  JobRun& first = *members.jobs.front();
  YMIR_TRY_ASSIGN(TaskGradient g, next_gradient(first, context));
  if (members.jobs.size() == 1) {
    const bool updated = update_task(first.task, g);
    return book_step(first, context, g, updated, clock.seconds());
  }
  JobRun& second = *members.jobs.back();
  YMIR_TRY_ASSIGN(TaskGradient h, next_gradient(second, context));
  const bool updated = update_pair(first.task, second.task, members.joint, g, h);
  const double seconds = clock.seconds();
  YMIR_TRY(book_step(first, context, g, updated, seconds));
  return book_step(second, context, h, updated, seconds);
}

// Finishes every job that has ended; true: at least one had.
Result<bool> finish_ended(RunMembers& members, const RunContext& context) {
  bool any = false;
  for (const auto& job : members.jobs) {
    if (job->progress.ended.empty()) continue;
    YMIR_TRY(finish_job(*job, context));
    any = true;
  }
  return any;
}

bool checkpoint_due(const JobRun& job) {
  const double every = job.order.spec.checkpoint_every.count();
  return every > 0 && job.progress.train_seconds - job.saved_at >= every;
}

}  // namespace

Result<> join(RunMembers& members, const RunContext& context) {
  JobRun &a = *members.jobs.front(), &b = *members.jobs.back();
  members.pair = true;
  a.partner = b.order.job;
  b.partner = a.order.job;
  if (!same_slots(a.task.setup.adapter, b.task.setup.adapter))
    return Error{ErrorCode::kConflict, "a spatial pair needs equal method, rank, scale and sites"};
  const bool fresh = a.task.step == 0 && b.task.step == 0;
  const bool together = !a.progress.joint_mark.empty() &&
                        a.progress.joint_mark == b.progress.joint_mark && a.saved_joint &&
                        b.saved_joint && at::equal(a.task.adapter, b.task.adapter);
  if (!fresh && !together)
    return Error{ErrorCode::kConflict,
                 fmt::format("a spatial pair starts without progress, or from checkpoints made "
                             "together: steps {} and {}",
                             a.task.step, b.task.step)};
  members.joint.moments = zero_moments(a.task.setup.adapter.layout);
  members.joint.moments.m = members.joint.moments.m.to(a.task.adapter.device());
  members.joint.moments.v = members.joint.moments.v.to(a.task.adapter.device());
  if (together) members.joint.moments = *a.saved_joint;
  members.joint.updates = together ? a.progress.joint_updates : 0;
  b.task.adapter = a.task.adapter;  // one tensor from now on
  log::debug("run {}: {} and {} share an adapter", to_string(context.run), to_string(a.order.job),
             to_string(b.order.job));
  return Ok{};
}

Result<> check_together(const RunMembers& members) {
  const JobRun& first = *members.jobs.front();
  for (const auto& job : members.jobs)
    if (const std::string why = cannot_share_a_pass(first.task.setup, job->task.setup);
        !why.empty())
      return Error{ErrorCode::kConflict,
                   job.get() == &first
                       ? fmt::format("{} can't train in one batch with others: {}",
                                     title_of(first.order), why)
                       : fmt::format("{} and {} can't train in one batch: {}",
                                     title_of(first.order), title_of(job->order), why)};
  return Ok{};
}

Result<RunEnd> train(RunMembers& members, const RunContext& context, const ProfileLimit& limit) {
  const at::NoGradGuard no_autograd;
  const Clock clock;
  std::int64_t steps = 0;
  while (true) {
    YMIR_TRY_ASSIGN(const bool ended, finish_ended(members, context));
    if (ended) {
      const bool all = std::all_of(members.jobs.begin(), members.jobs.end(),
                                   [](const auto& job) { return !job->progress.ended.empty(); });
      if (all) return RunEnd::kFinished;
      if (members.pair) return RunEnd::kPartnerFinished;
      std::erase_if(members.jobs, [](const auto& job) { return !job->progress.ended.empty(); });
    }
    if (limit.met(steps, clock.seconds())) return RunEnd::kProfileDone;
    const StopWish wish = context.stop();
    if (wish == StopWish::kStop) return RunEnd::kStopped;
    if (wish == StopWish::kStopNow) return RunEnd::kStoppedNow;
    YMIR_TRY(take_step(members, context));
    ++steps;
    for (const auto& job : members.jobs) {
      const auto evaluated = evaluate_job(*job, context, false);
      if (!evaluated && evaluated.error().code == ErrorCode::kUnavailable)
        return RunEnd::kStoppedNow;
      YMIR_TRY(evaluated);
    }
    if (std::any_of(members.jobs.begin(), members.jobs.end(),
                    [](const auto& job) { return checkpoint_due(*job); }) &&
        std::all_of(members.jobs.begin(), members.jobs.end(),
                    [](const auto& job) { return job->progress.ended.empty(); }))
      YMIR_TRY(leave(members, context, members.pair));
  }
}

Result<> leave(RunMembers& members, const RunContext& context, bool as_pair) {
  const std::string mark = as_pair ? mark_of(members, context) : "";
  for (const auto& job : members.jobs)
    if (job->progress.ended.empty() && job->saved_step != job->progress.step)
      YMIR_TRY(checkpoint_job(*job, context, as_pair ? &members.joint : nullptr, mark));
  return Ok{};
}

}  // namespace ymir
