#include "ymir/estimate/outlook.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ymir {
namespace {

// The step at which the target was met: between the last evaluation that missed it and the one
// that met it, in proportion.
double crossing(const std::vector<ErrorPoint>& points, double goal, double met_at) {
  const ErrorPoint *missed = nullptr, *met = nullptr;
  for (const ErrorPoint& point : points) {
    if (point.step > met_at) break;
    if (point.error > goal) {
      missed = &point;
    } else if (point.step == met_at) {
      met = &point;
    }
  }
  if (!missed || !met || met->step <= missed->step || met->error >= missed->error) return met_at;
  const double part = (missed->error - goal) / (missed->error - met->error);
  return missed->step + part * (met->step - missed->step);
}

double own_step(const JobView& job) {
  return job.own_checkpoint ? static_cast<double>(job.own_checkpoint->step) : 0;
}

double total_steps(const JobView& job) {
  return static_cast<double>(std::max<std::int64_t>(job.facts.total_steps, 1));
}

double goal_of(const JobView& job) {
  return error_of(judged_metric(job.spec), job.spec.target.value);
}

// Seconds a step of the job takes alone.
double step_seconds(const Knowledge& knowledge, const JobView& job) {
  const StepKey* key = knowledge.step_times().key_of(job.id);
  StepKey alone = key ? *key : step_key(job.spec, job.facts, {}, job.spec.min_gpus);
  alone.joint = false;
  return knowledge.step_times().predict(alone).value.p50 * knowledge.overhead().p50;
}

// The paper's rule: no evaluation of the merged run is better than what the job had before its
// first step: an evaluation at that step, else the job's own newest one. Its own first evaluation
// is no stand-in: a source that helps lifts that one most.
bool never_improved(const JobView& job, const Transfer& transfer,
                    const std::vector<ErrorPoint>& points) {
  const std::string metric = judged_metric(job.spec);
  std::optional<double> before;
  if (const auto own = own_points(job); !own.empty()) before = own.back().error;
  for (const Evaluation& e : transfer.evaluations) {
    const std::optional<double> value = metric_of(e, metric);
    if (value && e.step == transfer.from_step) before = error_of(metric, *value);
  }
  return before && std::ranges::all_of(
                       points, [&](const ErrorPoint& point) { return point.error >= *before; });
}

// What a joint step costs, in steps alone, on the average of the two.
double joint_cost(const Snapshot& now, const Knowledge& knowledge, const RunView& run) {
  double cost = 0;
  for (const JobId id : run.jobs) {
    const JobView& job = now.jobs.at(id);
    const StepKey* measured = knowledge.step_times().key_of(id);
    StepKey key = measured ? *measured : step_key(job.spec, job.facts, {}, run.what.gpus);
    key.joint = true;
    const double joint = knowledge.step_times().predict(key).value.p50;
    key.joint = false;
    cost += joint / knowledge.step_times().predict(key).value.p50;
  }
  return cost / static_cast<double>(run.jobs.size());
}

// Speed-up in steps from which on a joint run ends sooner in sum than one job after the other: with
// m <= M seconds alone and joint steps c times as long, (2 c m + M - m) / (2 m + M).
double joint_break_even(const Snapshot& now, const Knowledge& knowledge, const RunView& run,
                        double slower) {
  std::array<double, 2> alone{};
  for (std::size_t i = 0; i < 2; ++i) {
    const JobView& job = now.jobs.at(run.jobs[i]);
    const StepKey* measured = knowledge.step_times().key_of(job.id);
    StepKey key = measured ? *measured : step_key(job.spec, job.facts, {}, run.what.gpus);
    key.joint = false;
    const double steps = has_target(job.spec)
                             ? std::min(knowledge.alone(job)->steps().p50, total_steps(job))
                             : total_steps(job);
    alone[i] = steps * knowledge.step_times().predict(key).value.p50;
  }
  const double least = std::min(alone[0], alone[1]), most = std::max(alone[0], alone[1]);
  return (2 * slower * least + most - least) / (2 * least + most);
}

TransferOutlook outlook_of(const Snapshot& now, const Knowledge& knowledge, const RunView& run,
                           const JobView& job, const Transfer& transfer) {
  const std::vector<ErrorPoint> points = merged_points(job, transfer);
  const auto held = knowledge.alone(job);
  const SoloBelief& alone = *held;
  const MergedBelief belief = merged_belief(alone, job, transfer);
  const std::string metric = judged_metric(job.spec);
  TransferOutlook outlook;
  outlook.run = run.run;
  outlook.job = job.id;
  const bool joint = run.jobs.size() == 2;
  const double cost = joint ? joint_cost(now, knowledge, run) : 1;
  outlook.helps = joint ? belief.exceeds(joint_break_even(now, knowledge, run, cost))
                        : belief.helps(points.empty() ? 0 : points.back().step, own_step(job));
  outlook.baseline = baseline_of(now, job, alone).name;
  if (points.empty()) return outlook;

  const double step = points.back().step;
  const auto per_epoch = static_cast<double>(std::max<std::int64_t>(job.facts.steps_per_epoch, 1));
  outlook.epochs = step / per_epoch;
  outlook.allowed_epochs = std::max(kAllowedEpochs, kAllowedShare * alone.steps().p50 / per_epoch);
  outlook.late = belief.late(own_step(job), cost, kAllowedShare, kAllowedEpochs * per_epoch);
  outlook.observed = value_of(metric, points.back().error);
  outlook.expected = value_of(metric, alone.expected_error(step));
  outlook.deviation = alone.deviation(step);
  outlook.literal_rule_failed = never_improved(job, transfer, points);
  outlook.restart_saves =
      belief.lost_by_going_on(step, own_step(job)) * step_seconds(knowledge, job) -
      knowledge.switch_cost().p50;
  return outlook;
}

// Only jobs that ended by their own stop rule say how a transfer went.
bool ran_to_its_end(const JobView& job) {
  return job.result && job.result->outcome == Outcome::kSucceeded;
}

TransferSettled settle(const Snapshot& now, const Knowledge& knowledge, const JobView& job,
                       const Transfer& transfer) {
  const std::vector<ErrorPoint> points = merged_points(job, transfer);
  const auto held = knowledge.alone(job);
  const SoloBelief& alone = *held;
  const MergedBelief belief = merged_belief(alone, job, transfer);
  const Baseline baseline = baseline_of(now, job, alone);
  const double seconds = step_seconds(knowledge, job);
  TransferSettled settled{.job = job.id,
                          .partner = transfer.partner,
                          .mode = transfer.mode,
                          .strength = transfer.strength,
                          .similarity = transfer.card.similarity,
                          .predicted = transfer.card.speedup,
                          .baseline = baseline.name,
                          .kept = transfer.verdict != Transfer::Verdict::kSplit};
  const double last = points.empty() ? 0 : points.back().step;
  double lost_steps = 0;
  if (!settled.kept) {
    // What the evaluations made of it; had it gone on, it might have been even less.
    settled.range = belief.speedup();
    settled.actual = settled.range.p50;
    settled.censored = true;
    lost_steps = job.merged ? belief.lost_by_going_on(0, own_step(job)) : last;
  } else if (job.result->target_reached) {
    const double with =
        crossing(points, goal_of(job), static_cast<double>(job.result->step - transfer.from_step));
    settled.actual = baseline.steps.p50 / std::max(with, 1.0);
    settled.range = {baseline.steps.p10 / std::max(with, 1.0), settled.actual,
                     baseline.steps.p90 / std::max(with, 1.0)};
    lost_steps = static_cast<double>(job.result->step - transfer.from_step) -
                 (noticed_at(baseline.steps.p50, steps_between_evaluations(job), total_steps(job)) -
                  own_step(job));
  } else {
    const double with = std::max(last, total_steps(job));
    settled.actual = baseline.steps.p50 / with;
    settled.range = {baseline.steps.p10 / with, settled.actual, baseline.steps.p90 / with};
    settled.censored = true;
    lost_steps = total_steps(job) - baseline.steps.p50;
  }
  settled.extra = Seconds(std::max(0.0, lost_steps) * seconds);
  return settled;
}

}  // namespace

Baseline baseline_of(const Snapshot& now, const JobView& job, const SoloBelief& alone) {
  for (const auto& [id, other] : now.jobs) {
    const bool same = !job.facts.data_hash.empty() && id != job.id &&
                      other.facts.data_hash == job.facts.data_hash &&
                      other.facts.backbone == job.facts.backbone &&
                      other.spec.target.metric == job.spec.target.metric &&
                      other.spec.target.value == job.spec.target.value &&
                      method_name(other.spec.method) == method_name(job.spec.method) &&
                      other.spec.train.batch == job.spec.train.batch;
    if (!same || other.merged || !ran_to_its_end(other)) continue;
    if (!other.result->target_reached || other.result->step < 1) continue;
    std::vector<ErrorPoint> points;
    for (const Evaluation* e : own_evaluations(other)) {
      if (const auto value = metric_of(*e, judged_metric(other.spec))) {
        points.push_back(
            {static_cast<double>(e->step), error_of(judged_metric(other.spec), *value), 0});
      }
    }
    const double steps = crossing(points, goal_of(other), static_cast<double>(other.result->step));
    return {"measured", log_normal(std::log(std::max(steps, 1.0)), 0.15)};
  }
  return {alone.points() > 0 ? "predicted" : "prior", alone.steps()};
}

MergedBelief merged_belief(const SoloBelief& alone, const JobView& job, const Transfer& transfer) {
  // A card that another program wrote may lack a prediction.
  const Interval& predicted = transfer.card.speedup;
  const bool usable = predicted.p10 > 0 && predicted.p10 <= predicted.p50 &&
                      predicted.p50 <= predicted.p90 && std::isfinite(predicted.p90);
  return {alone, usable ? predicted : Interval{0.5, 1, 2}, merged_points(job, transfer),
          steps_between_evaluations(job), total_steps(job)};
}

std::vector<TransferOutlook> outlooks(const Snapshot& now, const Knowledge& knowledge) {
  std::vector<TransferOutlook> result;
  for (const auto& [id, run] : now.runs) {
    if (run.profile || run.what.mode == Mode::kNormal) continue;
    for (const JobId member : run.jobs) {
      const JobView& job = now.jobs.at(member);
      if (job.transfers.empty() || job.transfers.back().run != id || !has_target(job.spec)) {
        continue;
      }
      const Transfer& transfer = job.transfers.back();
      if (transfer.verdict == Transfer::Verdict::kSplit || job.ended()) continue;
      result.push_back(outlook_of(now, knowledge, run, job, transfer));
    }
  }
  return result;
}

std::vector<TransferSettled> settlements(const Snapshot& now, const Knowledge& knowledge) {
  std::vector<TransferSettled> result;
  for (const auto& [id, job] : now.jobs) {
    for (const Transfer& transfer : job.transfers) {
      if (transfer.settled || !has_target(job.spec)) continue;
      const bool split = transfer.verdict == Transfer::Verdict::kSplit;
      // Until its run is closed a split job has not yet gone back, or on.
      if (split ? now.runs.contains(transfer.run) : !ran_to_its_end(job)) continue;
      result.push_back(settle(now, knowledge, job, transfer));
    }
  }
  return result;
}

}  // namespace ymir
