// A World that a test drives by hand: what happens is what the test says, requests are recorded
// and, by default, answered at once. And a policy and beliefs to go with it. For tests only.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ymir/control/controller.h"
#include "ymir/control/world.h"

namespace ymir {

class ScriptedWorld : public World {
 public:
  // How requests are answered; a test may replace each by its own or by nothing.
  std::function<void(const CheckData&)> on_check = [this](const CheckData& check) {
    happen(DataChecked{check.job, facts});
  };
  std::function<void(const StartRun&)> on_start = [this](const StartRun& start) {
    happen(RunStarted{.run = start.run});
  };
  std::function<void(const StopRun&)> on_stop = [this](const StopRun& stop) { end_run(stop.run); };

  DataFacts facts{.train_rows = 900,
                  .validation_rows = 100,
                  .steps_per_epoch = 30,
                  .total_steps = 90,
                  .data_hash = "d",
                  .backbone = "minilm"};
  std::vector<Action> asked{};
  Time newest_deadline{};  // of the newest wait()

  void happen(EventBody body) { queue_.push_back({.at = now_, .body = std::move(body)}); }
  // Time passes; the controller turns once more although nothing happened.
  void advance(Seconds by) {
    now_ = now_ + by;
    turn_ = true;
  }

  template <class T>
  std::vector<T> asked_for() const {
    std::vector<T> found;
    for (const Action& action : asked)
      if (const auto* a = std::get_if<T>(&action)) found.push_back(*a);
    return found;
  }
  const StartRun* order(RunId run) const {
    const auto found = orders_.find(run);
    return found == orders_.end() ? nullptr : &found->second;
  }

  // The worker commits `step` of a job in its run; at a stop it commits what it has.
  void reach(JobId job, RunId run, std::int64_t step) {
    steps_[{run, job}] = step;
    happen(checkpoint(job, run, step));
  }
  void train_to(JobId job, RunId run, std::int64_t step) { steps_[{run, job}] = step; }
  void end_run(RunId run, const std::string& why = "round") {
    const StartRun* start = order(run);
    if (start == nullptr) return happen(RunStopped{.run = run, .why = why});
    RunStopped stopped{.run = run, .why = why};
    for (const TaskOrder& task : start->tasks) {
      const std::int64_t step = step_of(run, task);
      if (step > 0) happen(checkpoint(task.job, run, step));
      stopped.jobs.push_back(task.job);
      stopped.steps.push_back(step);
    }
    happen(stopped);
  }
  std::int64_t step_of(RunId run, const TaskOrder& task) const {
    const auto reached = steps_.find({run, task.job});
    return reached == steps_.end() ? task.from_step : reached->second;
  }
  static CheckpointCommitted checkpoint(JobId job, RunId run, std::int64_t step) {
    const std::string path = "/state/artifacts/" + to_string(job) + "/" + to_string(run) +
                             "/step-" + std::to_string(step);
    return {.job = job,
            .run = run,
            .step = step,
            .path = path,
            .hash = "h" + std::to_string(step),
            .adapter = path + "/adapter",
            .adapter_hash = "a" + std::to_string(step)};
  }

  Time now() const override { return now_; }
  std::vector<Event> wait(Time deadline) override {
    turn_ = false;
    newest_deadline = deadline;
    return std::exchange(queue_, {});
  }
  Result<> request(const Action& action) override {
    asked.push_back(action);
    if (const auto* check = std::get_if<CheckData>(&action)) on_check(*check);
    if (const auto* start = std::get_if<StartRun>(&action)) {
      const bool first = orders_.emplace(start->run, *start).second;
      if (first) on_start(*start);
    }
    if (const auto* stop = std::get_if<StopRun>(&action)) on_stop(*stop);
    return Ok{};
  }
  bool finished() const override { return queue_.empty() && !turn_; }

 private:
  Time now_ = from_seconds(1000);
  std::vector<Event> queue_{};
  bool turn_ = false;
  std::map<RunId, StartRun> orders_{};
  std::map<std::pair<RunId, JobId>, std::int64_t> steps_{};
};

// Plans what the test says.
class ScriptedPolicy final : public Policy {
 public:
  std::function<std::vector<Assignment>(const Snapshot&)> plan = [](const Snapshot&) {
    return std::vector<Assignment>{};
  };
  std::string_view name() const override { return "scripted"; }
  Result<Decision> decide(const Round& round) const override {
    Decision decision;
    for (const Assignment& what : plan(round.cluster))
      decision.plan.assignments.push_back({.what = what});
    std::ranges::sort(decision.plan.assignments, {},
                      [](const PlannedAssignment& line) { return line.what.job; });
    std::set<JobId> placed;
    for (const PlannedAssignment& line : decision.plan.assignments) {
      placed.insert(line.what.job);
      if (line.what.partner) placed.insert(*line.what.partner);
    }
    for (const auto& [id, job] : round.cluster.jobs)
      if (job.active() && !placed.contains(id))
        decision.plan.waiting.push_back({id, "no_capacity"});
    return decision;
  }
};

// Believes what the test says: outlooks of running merges, and probes.
struct ScriptedBeliefs {
  std::function<std::vector<TransferOutlook>(const Snapshot&)> outlooks = [](const Snapshot&) {
    return std::vector<TransferOutlook>{};
  };
  std::function<std::vector<Estimator::ProbeWish>(const Snapshot&, JobId)> probes =
      [](const Snapshot&, JobId) { return std::vector<Estimator::ProbeWish>{}; };
  std::uint64_t observed = 0;

  Beliefs bind() {
    return {.observe = [this](const Event&, const Snapshot&) { ++observed; },
            .forecast =
                [this](const Snapshot& now) {
                  Forecast forecast;
                  forecast.outlooks = outlooks(now);
                  return forecast;
                },
            .outlooks = [this](const Snapshot& now) { return outlooks(now); },
            .settle = [](const Snapshot&) { return std::vector<TransferSettled>{}; },
            .probes_wanted = [this](const Snapshot& now, JobId job) { return probes(now, job); }};
  }
};

}  // namespace ymir
