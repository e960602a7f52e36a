// A small world for tests of the estimator: tasks with known curves and known gains, trained one
// after another on one place, reported as the events that workers send and folded by the real
// Snapshot. Chance comes from one seed.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ymir/base/rng.h"
#include "ymir/core/snapshot.h"
#include "ymir/estimate/estimator.h"
#include "ymir/estimate/solo_curve.h"

namespace ymir::test {

struct Truth {
  double steps = 40;  // alone, to the target
  double start = 0.5, goal = 0.2;
  int power = 2;
  int family = 0;
};

class TestWorld {
 public:
  explicit TestWorld(std::uint64_t seed, EstimatorOptions options = {})
      : rng_(seed), estimator_(*Estimator::create(std::move(options))) {
    tell(DaemonStarted{.version = "test", .era = 1, .round = Seconds(2), .policy = "test"});
    tell(PlaceReady{.place = kPlace, .node = "n", .num_slots = 2, .hardware = "cpu"});
  }

  const Snapshot& now() const { return now_; }
  const Estimator& estimator() const { return estimator_; }
  const std::vector<Event>& log() const { return log_; }
  const JobView& job(JobId id) const { return now_.jobs.at(id); }
  void pass(double seconds) { clock_ += seconds; }

  void tell(EventBody body) {
    Event event{.seq = now_.seq + 1, .at = from_seconds(clock_), .body = std::move(body)};
    now_.apply(event);
    estimator_.observe(event, now_);
    log_.push_back(std::move(event));
  }

  JobId submit(const Truth& truth, std::int64_t rows = 250, bool explore = true) {
    const JobId id{++last_job_};
    truths_[id] = truth;
    JobSpec spec;
    spec.name = "task";
    spec.method.targets = {"query", "value"};
    spec.train.batch = 16;
    spec.target = {"accuracy", 1 - truth.goal};
    spec.evaluate_epochs = 0.5;
    spec.sharing.explore = explore;
    tell(JobSubmitted{id, spec});
    tell(DataCheckStarted{id});
    DataFacts facts;
    facts.train_rows = rows;
    facts.validation_rows = 350;
    facts.num_labels = 2;
    facts.mean_tokens = 24;
    facts.steps_per_epoch = kEpoch;
    facts.total_steps = 10 * kEpoch;
    facts.data_hash = "data " + std::to_string(id.value);
    facts.backbone = "minilm";
    tell(DataChecked{id, facts});
    return id;
  }

  // The first half epoch, alone.
  void profile(JobId id, std::int64_t steps = 8) {
    const RunId run = start({.mode = Mode::kNormal, .job = id, .gpus = 1}, {id}, {0}, true);
    Profile profile;
    profile.evaluations = {evaluation(id, 0, 1), evaluation(id, steps, 1)};
    profile.step_times = {timing(id, steps)};
    pass(kStep * static_cast<double>(steps));
    tell(CheckpointCommitted{.job = id, .run = run, .step = steps, .path = "c", .hash = "h"});
    tell(ProfileFinished{id, run, profile});
    stop(run, "profile_done", {id}, {steps}, kStep * static_cast<double>(steps));
  }

  // Brings one probe, as a worker would report it.
  void probe(JobId source, JobId target, double value, double strength = 0.5) {
    const std::int64_t done = job(target).steps_done;
    const RunId run =
        start({.mode = Mode::kNormal, .job = target, .gpus = 1}, {target}, {done}, true);
    Profile profile;
    profile.probes = {{source, strength, value, 250}};
    tell(ProfileFinished{target, run, profile});
    stop(run, "profile_done", {target}, {done}, 0.1);
  }

  // Plans and starts what the candidate says.
  RunId begin(const Assignment& what, const Card& card) {
    Plan plan;
    plan.assignments = {{what, card}};
    tell(PlanAdopted{.round = now_.round + 1, .based_on = now_.seq, .plan = plan});
    const bool temporal = what.mode == Mode::kTemporal;
    std::vector<JobId> jobs{what.job};
    if (what.mode == Mode::kSpatial) jobs.push_back(*what.partner);
    std::vector<std::int64_t> from;
    for (const JobId id : jobs) {
      const bool anew = temporal && !job(id).merged;
      from.push_back(anew || what.mode == Mode::kSpatial ? 0 : job(id).steps_done);
    }
    return start(what, jobs, from, false);
  }

  // Trains the job of the run until the next half epoch and reports it; true when it ended.
  bool advance(RunId run, JobId id, double speedup) {
    const std::int64_t from = progress_[id];
    const std::int64_t step = from + kEpoch / 2;
    pass(kStep * static_cast<double>(step - from));
    progress_[id] = step;
    const Evaluation seen = evaluation(id, step, speedup);
    tell(StepTimed{id, run, timing(id, step - from)});
    tell(CheckpointCommitted{.job = id,
                             .run = run,
                             .step = step,
                             .path = "c",
                             .hash = "h",
                             .adapter = "a",
                             .adapter_hash = "h"});
    tell(EpochEvaluated{id, run, seen, {}});
    const bool met = reaches(job(id).spec.target, seen.metrics.at("accuracy"));
    if (!met && step < job(id).facts.total_steps) return false;
    tell(JobFinished{.job = id,
                     .outcome = Outcome::kSucceeded,
                     .reason = met ? "target" : "budget",
                     .run = run,
                     .target_reached = met,
                     .step = step,
                     .metrics = seen.metrics,
                     .adapter = "a",
                     .adapter_hash = "h"});
    stop(run, "finished", {id}, {step}, 0);
    settle();
    return true;
  }

  void stop(RunId run, const std::string& why, std::vector<JobId> jobs,
            std::vector<std::int64_t> steps, double busy) {
    if (busy == 0) busy = (now_.now - *now_.runs.at(run).started).count();
    tell(RunStopped{run, why, std::move(jobs), std::move(steps), Seconds(busy)});
  }
  void split(RunId run, JobId id, JobId partner, bool restart) {
    tell(RunSplit{.run = run, .job = id, .partner = partner, .restart = restart});
    stop(run, "split", {id}, {progress_[id]}, 0);
    settle();
  }
  void settle() {
    for (const TransferSettled& settled : estimator_.settle(now_)) tell(settled);
  }

  double true_error(JobId id, double step) const {
    const Truth& t = truths_.at(id);
    const double floor = t.goal - 0.1 * (t.start - t.goal) / 0.9;
    const double half = t.steps / std::pow(9.0, 1.0 / t.power);
    return floor + (t.start - floor) / (1 + std::pow(step / half, t.power));
  }
  const Truth& truth(JobId id) const { return truths_.at(id); }
  Rng& rng() { return rng_; }

  static constexpr std::int64_t kEpoch = 16;
  static constexpr double kStep = 0.2;
  static constexpr PlaceId kPlace{1};

 private:
  RunId start(const Assignment& what, const std::vector<JobId>& jobs,
              const std::vector<std::int64_t>& from, bool profile) {
    const RunId run = now_.new_run();
    std::vector<int> slots;
    for (int s = 0; std::ssize(slots) < what.gpus; ++s) {
      if (!now_.places.at(kPlace).taken.contains(s)) slots.push_back(s);
    }
    tell(RunRequested{.run = run,
                      .what = what,
                      .jobs = jobs,
                      .profile = profile,
                      .place = kPlace,
                      .slots = slots,
                      .from_steps = from});
    pass(0.05);
    tell(RunStarted{run, StartKind::kSwap, 50});
    for (std::size_t i = 0; i < jobs.size(); ++i) progress_[jobs[i]] = from[i];
    return run;
  }
  Evaluation evaluation(JobId id, std::int64_t step, double speedup) {
    const double error = true_error(id, speedup * static_cast<double>(step));
    const double noise = std::sqrt(error * (1 - error) / 350) * rng_.normal();
    return {.step = step,
            .epoch = static_cast<double>(step) / kEpoch,
            .samples = step * 16,
            .metrics = {{"accuracy", std::clamp(1 - error + noise, 0.0, 1.0)}}};
  }
  StepTiming timing(JobId id, std::int64_t steps) const {
    const JobView& view = job(id);
    return {step_key(view.spec, view.facts, "cpu", 1), steps, Seconds(kStep), Seconds(0.01)};
  }

  Rng rng_;
  Estimator estimator_;
  Snapshot now_{};
  std::vector<Event> log_{};
  double clock_ = 0;
  std::uint64_t last_job_ = 0;
  std::map<JobId, Truth> truths_{};
  std::map<JobId, std::int64_t> progress_{};
};

}  // namespace ymir::test
