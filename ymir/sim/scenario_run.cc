#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <span>

#include "ymir/sim/scenario.h"

namespace ymir {

namespace {

constexpr std::string_view kOracleLink = "ymir:oracle-";

// Tells the world when nobody is left, because a job may also end by the controller's decision.
// After a restart the log is observed from its beginning again.
Beliefs watched(Beliefs beliefs, SimWorld& world, const Scenario& scenario) {
  const auto observe = beliefs.observe;
  beliefs.observe = [observe, &world, &scenario, ended = std::size_t{0}](
                        const Event& event, const Snapshot& after) mutable {
    observe(event, after);
    ended += std::holds_alternative<JobFinished>(event.body) ? 1 : 0;
    if (ended == scenario.jobs.size() && after.runs.empty()) world.finish();
  };
  return beliefs;
}

void plan_actions(const Scenario& scenario, SimWorld& world) {
  using Kind = ScenarioAction::Kind;
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    world.submit_at(scenario.jobs[i].at, JobId{i + 1}, scenario.jobs[i].spec);
  for (const ScenarioAction& action : scenario.actions) {
    switch (action.kind) {
      case Kind::kCancel:
        world.cancel_at(action.at, action.job);
        break;
      case Kind::kHold:
        world.hold_at(action.at, action.job);
        break;
      case Kind::kRelease:
        world.release_at(action.at, action.job);
        break;
      case Kind::kKill:
        world.kill_worker_at(action.at, action.job);
        break;
      case Kind::kLose:
        world.lose_node_at(action.at, action.node, action.until);
        break;
      case Kind::kRestart:
        world.break_at(action.at);
        break;
    }
  }
}

// The log in memory, given away at the end without a copy; or nothing but a way to who watches.
// Measured times are taken out: they are no part of what happened.
class Record final : public EventLog {
 public:
  explicit Record(const Scenario& scenario) : scenario_(scenario) {}

  Result<> append(std::span<const Event> batch) override {
    std::vector<Event> copy(batch.begin(), batch.end());
    return take(copy);
  }
  Result<> take(std::vector<Event>& batch) override {
    for (Event& event : batch) {
      YMIR_CHECK(event.seq == last_seq_ + 1, "a gap in the log");
      last_seq_ = event.seq;
      if (auto* adopted = std::get_if<PlanAdopted>(&event.body)) strip(*adopted);
      if (scenario_.watch) scenario_.watch(event);
      if (scenario_.keep_log) events_.push_back(std::move(event));
    }
    batch.clear();
    return Ok{};
  }
  Result<std::vector<Event>> read(std::uint64_t from, std::size_t limit) const override {
    YMIR_CHECK(events_.size() == last_seq_, "this log is not kept");
    const std::size_t first = std::min<std::size_t>(from == 0 ? 0 : from - 1, events_.size());
    const auto begin = events_.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<Event>(
        begin, begin + static_cast<std::ptrdiff_t>(std::min(limit, events_.size() - first)));
  }
  std::uint64_t last_seq() const override { return last_seq_; }
  std::string head_hash() const override { return ""; }  // nobody asks in a simulation

  void move_to(ScenarioRun& run) && {
    run.log.assign(std::make_move_iterator(events_.begin()),
                   std::make_move_iterator(events_.end()));
    run.solve_ms = std::move(solve_ms_);
  }

 private:
  void strip(PlanAdopted& adopted) {
    if (const auto solve = adopted.pass_ms.find("solve"); solve != adopted.pass_ms.end())
      solve_ms_.push_back(solve->second);
    adopted.pass_ms.clear();
  }

  const Scenario& scenario_;
  std::uint64_t last_seq_ = 0;
  std::deque<Event> events_;  // never moves what it holds
  std::vector<double> solve_ms_;
};

}  // namespace

JobModel model_of(const Scenario& scenario) {
  JobModel model;
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    model.add(JobId{i + 1}, scenario.jobs[i].truth);
  for (const auto& [pair, gain] : scenario.temporal)
    model.set_temporal(pair.first, pair.second, gain);
  for (const auto& [pair, truth] : scenario.spatial)
    model.set_spatial(pair.first, pair.second, truth);
  for (const auto& [pair, gain] : scenario.family_temporal)
    model.set_family_temporal(pair.first, pair.second, gain);
  for (const auto& [pair, truth] : scenario.family_spatial)
    model.set_family_spatial(pair.first, pair.second, truth);
  return model;
}

Result<ScenarioRun> run_scenario(const Scenario& scenario, const MakeBeliefs& estimator) {
  SimWorld world(scenario.cluster, model_of(scenario));
  plan_actions(scenario, world);
  const Oracle oracle(world.model(), scenario.beliefs);
  FaultyWorld faulty(world, scenario.faults);
  World& way = scenario.faulty ? static_cast<World&>(faulty) : world;
  YMIR_TRY_ASSIGN(const auto policy, make_policy(scenario.policy, scenario.settings));
  Record log(scenario);
  if (scenario.real_estimator && !estimator)
    return Error{ErrorCode::kInvalidArgument, "beliefs=estimator, but none was given"};

  ControllerOptions options = scenario.controller;
  options.publish = false;
  ScenarioRun run;
  while (true) {
    ++run.counts["controllers"];
    Beliefs beliefs = scenario.real_estimator ? estimator() : oracle.bind();
    if (beliefs.know && scenario.policy.starts_with(kOracleLink))
      beliefs.know(oracle.link(std::string_view(scenario.policy).substr(kOracleLink.size())));
    YMIR_TRY_ASSIGN(const auto controller,
                    Controller::create(options, way, log, *policy,
                                       watched(std::move(beliefs), world, scenario)));
    YMIR_TRY(controller->run());
    run.state = std::move(*controller).take_state();
    run.counts["refused_reports"] += static_cast<std::int64_t>(controller->num_refused());
    if (!world.broken()) break;
    world.controller_restarted();
    faulty.controller_restarted();
  }
  std::move(log).move_to(run);
  run.counts["steps_lost"] = world.steps_lost();
  run.counts["lost_requests"] = static_cast<std::int64_t>(faulty.num_lost());
  run.counts["delayed_reports"] = static_cast<std::int64_t>(faulty.num_delayed());
  run.counts["doubled_reports"] = static_cast<std::int64_t>(faulty.num_doubled());
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    run.counts["steps_lost " + scenario.jobs[i].name] = world.steps_lost(JobId{i + 1});
  return run;
}

}  // namespace ymir
