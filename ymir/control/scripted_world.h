// A World that a test drives by hand: what happens is what the test says, requests are recorded
// and, by default, answered at once. For tests only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace ymir
