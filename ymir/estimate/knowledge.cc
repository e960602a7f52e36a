#include "ymir/estimate/knowledge.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "ymir/estimate/transfer_curve.h"

namespace ymir {
namespace {

constexpr std::size_t kRemembered = 48;
// Of ln speed-up: what one run's luck changes in the step at which the target is met.
constexpr double kRunNoise = 0.15, kMeasuredBaseline = 0.15;
// A spatial pair: a joint step takes a batch of each; whether sharing helps is open.
constexpr double kSpatialIntercept = -0.1;

GainOptions spatial_options() {
  GainOptions options;
  options.intercept = kSpatialIntercept;
  options.intercept_deviation = 0.25;
  options.slope = 0.1;
  options.slope_deviation = 0.15;
  return options;
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

void Recent::add(double value) {
  if (!(value > 0) || !std::isfinite(value)) return;
  values_.push_back(value);
  if (values_.size() > kRemembered) values_.pop_front();
}

Interval Recent::interval() const {
  if (values_.size() < 3) return prior_;
  std::vector<double> sorted(values_.begin(), values_.end());
  std::ranges::sort(sorted);
  auto at = [&](double p) {
    return sorted[static_cast<std::size_t>(
        std::floor(p * static_cast<double>(sorted.size() - 1) + 0.5))];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

Knowledge::Knowledge(std::shared_ptr<CurveHints> hints)
    : hints_(std::move(hints)),
      spatial_(spatial_options()),
      switch_seconds_({0.05, 0.5, 3}),
      overhead_({1.05, 1.2, 1.6}) {}

void Knowledge::observe(const Event& event, const Snapshot& after) {
  std::visit(Overloaded{[&](const ProfileFinished& e) {
                          for (const StepTiming& timing : e.profile.step_times)
                            step_times_.add(e.job, timing);
                        },
                        [&](const StepTimed& e) { step_times_.add(e.job, e.timing); },
                        [&](const RunRequested& e) {
                          OpenRun run{.request = e, .started = event.at};
                          if (!e.profile && e.what.mode != Mode::kNormal) {
                            for (const JobId id : e.jobs) {
                              const JobView& job = after.jobs.at(id);
                              run.explores = run.explores || (!job.transfers.empty() &&
                                                              job.transfers.back().run == e.run &&
                                                              job.transfers.back().card.explores);
                            }
                            if (run.explores) run.planned = planned_cost(e, after);
                          }
                          open_.emplace(e.run, std::move(run));
                        },
                        [&](const RunStarted& e) {
                          switch_seconds_.add(e.milliseconds / 1000);
                          if (const auto found = open_.find(e.run); found != open_.end()) {
                            found->second.started = event.at;
                            found->second.start_seconds = e.milliseconds / 1000;
                          }
                        },
                        [&](const RunStopped& e) {
                          const auto found = open_.find(e.run);
                          if (found == open_.end()) return;
                          learn_overhead(found->second, e, after);
                          close(e.run, e.busy.count());
                        },
                        [&](const RunLost& e) {
                          const auto found = open_.find(e.run);
                          if (found == open_.end()) return;
                          close(e.run, (event.at - found->second.started).count());
                        },
                        [&](const TransferSettled& e) { learn_gain(e, after); },
                        [&](const JobFinished& e) {
                          alone_.erase(e.job);
                          learn_class(e, after);
                        },
                        [](const auto&) {}},
             event.body);
}

std::shared_ptr<const SoloBelief> Knowledge::alone(const JobView& job) const {
  SoloEvidence evidence = solo_evidence(job, classes_, *hints_);
  if (job.ended()) return std::make_shared<const SoloBelief>(evidence);
  Alone& known = alone_[job.id];
  if (!known.belief || !(known.evidence == evidence)) {
    known.belief = std::make_shared<const SoloBelief>(evidence);
    known.evidence = std::move(evidence);
  }
  return known.belief;
}

void Knowledge::close(RunId id, double busy) {
  const OpenRun& run = open_.at(id);
  if (run.explores) {
    explored_ += std::min(run.planned, busy * static_cast<double>(run.request.slots.size()));
  }
  open_.erase(id);
}

// Two epochs of each member: after that the stop-loss has decided.
double Knowledge::planned_cost(const RunRequested& request, const Snapshot& after) const {
  double seconds = switch_cost().p50;
  for (const JobId id : request.jobs) {
    const JobView& job = after.jobs.at(id);
    const StepKey* key = step_times_.key_of(id);
    const Link tau =
        step_times_.predict(key ? *key : step_key(job.spec, job.facts, {}, request.what.gpus));
    seconds += 2 * static_cast<double>(job.facts.steps_per_epoch) * tau.value.p50;
  }
  return seconds * static_cast<double>(request.slots.size());
}

double Knowledge::explored(const Snapshot& now) const {
  double sum = explored_;
  for (const auto& [id, run] : open_) {
    if (!run.explores) continue;
    const bool judged = std::ranges::all_of(run.request.jobs, [&](JobId member) {
      const auto job = now.jobs.find(member);
      return job == now.jobs.end() || job->second.transfers.empty() ||
             job->second.transfers.back().verdict != Transfer::Verdict::kOpen;
    });
    const double elapsed =
        (now.now - run.started).count() * static_cast<double>(run.request.slots.size());
    sum += judged ? std::min(run.planned, elapsed) : run.planned;
  }
  return sum;
}

double Knowledge::detection_rate() const { return harmful_split_ / harmful_; }

void Knowledge::learn_overhead(const OpenRun& run, const RunStopped& stopped,
                               const Snapshot& after) {
  if (run.request.profile) return;
  double training = 0;
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < run.request.jobs.size(); ++i) {
    const auto at = std::ranges::find(stopped.jobs, run.request.jobs[i]) - stopped.jobs.begin();
    if (static_cast<std::size_t>(at) >= stopped.steps.size()) continue;
    const StepKey* key = step_times_.key_of(run.request.jobs[i]);
    if (!key || !after.jobs.contains(run.request.jobs[i])) continue;
    const std::int64_t done =
        stopped.steps[static_cast<std::size_t>(at)] - run.request.from_steps[i];
    steps += done;
    training += static_cast<double>(done) * step_times_.predict(*key).value.p50;
  }
  if (steps < 8 || training <= 0 || run.request.jobs.size() != 1) return;
  overhead_.add(std::clamp(stopped.busy.count() / training, 1.0, 10.0));
}

void Knowledge::learn_class(const JobFinished& e, const Snapshot& after) {
  const JobView& job = after.jobs.at(e.job);
  if (!has_target(job.spec) || job.merged) return;
  const bool over = e.reason == "target" || e.reason == "budget" || e.reason == "plateau" ||
                    e.reason == "patience";
  if (!over || e.step < 1) return;
  classes_.add(class_key(job), static_cast<double>(e.step), e.target_reached,
               static_cast<double>(job.facts.total_steps));
}

void Knowledge::learn_gain(const TransferSettled& e, const Snapshot& after) {
  const JobView& target = after.jobs.at(e.job);
  const auto source = after.jobs.find(e.partner);
  if (source == after.jobs.end() || !has_target(target.spec) || !(e.actual > 0)) return;
  if (e.actual < 1) {
    harmful_ += 1;
    harmful_split_ += e.kept ? 0 : 1;
  }
  const auto merge = std::ranges::find_if(target.transfers, [&](const Transfer& t) {
    return t.partner == e.partner && t.mode == e.mode;
  });
  if (merge == target.transfers.end() || merged_points(target, *merge).empty()) return;
  const bool same_data =
      !target.facts.data_hash.empty() && target.facts.data_hash == source->second.facts.data_hash;
  if (same_data) return;  // says nothing about other pairs

  const auto own = alone(target);
  const Interval steps = own->steps();
  GainRow row;
  row.input = gain_input(source->second, target, slowness_of(target, *own, classes_), e.similarity,
                         e.strength);
  row.log_speedup = std::log(e.actual);
  row.upper_bound = e.censored;
  row.deviation = std::hypot(kRunNoise, e.baseline == "measured"
                                            ? kMeasuredBaseline
                                            : std::log(steps.p90 / steps.p10) / (2 * kZ90));
  (e.mode == Mode::kSpatial ? spatial_ : temporal_).add(gain_key(class_key(target), e.mode), row);
}

double slowness_of(const JobView& job, const SoloBelief& alone, const ClassPriors& classes) {
  const Interval usual = classes.steps(class_key(job), static_cast<double>(job.facts.total_steps));
  return std::log(alone.steps().p50 / usual.p50);
}

GainInput gain_input(const JobView& source, const JobView& target, double slowness,
                     double similarity, double strength) {
  return {.similarity = similarity,
          .strength = strength,
          .source_rows = static_cast<double>(source.facts.train_rows),
          .target_rows = static_cast<double>(target.facts.train_rows),
          .slowness = slowness,
          .same_kind = source.spec.kind == target.spec.kind};
}

double slot_seconds(const Snapshot& now) {
  double sum = 0;
  for (const auto& [id, job] : now.jobs) sum += job.busy.count();
  for (const auto& [id, run] : now.runs) {
    if (run.started) {
      sum += (now.now - *run.started).count() * static_cast<double>(run.slots.size());
    }
  }
  return sum;
}

std::vector<ErrorPoint> merged_points(const JobView& job, const Transfer& transfer) {
  const std::string metric = judged_metric(job.spec);
  std::map<std::int64_t, ErrorPoint> by_step;
  auto add = [&](const Evaluation& e) {
    const std::optional<double> value = metric_of(e, metric);
    if (!value || e.step <= transfer.from_step) return;
    const double error = error_of(metric, *value);
    by_step[e.step] = {static_cast<double>(e.step - transfer.from_step), error,
                       evaluation_variance(job, error)};
  };
  for (const Evaluation& e : transfer.evaluations) add(e);
  // What came after a split that went on from where it was is still that path.
  if (job.merged && !job.transfers.empty() && &transfer == &job.transfers.back()) {
    for (const Evaluation& e : job.evaluations) add(e);
  }
  std::vector<ErrorPoint> points;
  for (const auto& [step, point] : by_step) points.push_back(point);
  return points;
}

}  // namespace ymir
