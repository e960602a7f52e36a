#include <fmt/format.h>

#include <algorithm>

#include "ymir/sim/scenario.h"

namespace ymir {

namespace {

// Tells the world when nobody is left, because a job may also end by the controller's decision.
Beliefs watched(Beliefs beliefs, SimWorld& world, const Scenario& scenario) {
  const auto observe = beliefs.observe;
  const std::size_t num_jobs = scenario.jobs.size();
  beliefs.observe = [observe, &world, &scenario, num_jobs](const Event& event,
                                                           const Snapshot& after) {
    observe(event, after);
    if (scenario.watch) scenario.watch(event);
    const bool all_ended =
        std::ranges::all_of(after.jobs, [](const auto& entry) { return entry.second.ended(); });
    if (after.jobs.size() == num_jobs && all_ended && after.runs.empty()) world.finish();
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

// Reads the whole log. Measured times are taken out: they are no part of what happened.
Result<> read_log(const EventLog& log, ScenarioRun& run) {
  std::vector<Event>& events = run.log;
  while (events.size() < log.last_seq()) {
    YMIR_TRY_ASSIGN(const std::vector<Event> some, log.read(events.size() + 1, 10'000));
    if (some.empty()) return Error{ErrorCode::kCorruption, "the log ends early"};
    events.insert(events.end(), some.begin(), some.end());
  }
  for (Event& event : events) {
    auto* adopted = std::get_if<PlanAdopted>(&event.body);
    if (adopted == nullptr) continue;
    if (const auto solve = adopted->pass_ms.find("solve"); solve != adopted->pass_ms.end())
      run.solve_ms.push_back(solve->second);
    adopted->pass_ms.clear();
  }
  return Ok{};
}

}  // namespace

JobModel model_of(const Scenario& scenario) {
  JobModel model;
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    model.add(JobId{i + 1}, scenario.jobs[i].truth);
  for (const auto& [pair, gain] : scenario.temporal)
    model.set_temporal(pair.first, pair.second, gain);
  for (const auto& [pair, truth] : scenario.spatial)
    model.set_spatial(pair.first, pair.second, truth);
  return model;
}

Result<ScenarioRun> run_scenario(const Scenario& scenario, const MakeBeliefs& estimator) {
  SimWorld world(scenario.cluster, model_of(scenario));
  plan_actions(scenario, world);
  const Oracle oracle(world.model(), scenario.beliefs);
  FaultyWorld faulty(world, scenario.faults);
  World& way = scenario.faulty ? static_cast<World&>(faulty) : world;
  YMIR_TRY_ASSIGN(const auto policy, make_policy(scenario.policy, scenario.settings));
  const auto log = make_memory_log();
  if (scenario.real_estimator && !estimator)
    return Error{ErrorCode::kInvalidArgument, "beliefs=estimator, but none was given"};

  ControllerOptions options = scenario.controller;
  options.publish = false;
  ScenarioRun run;
  while (true) {
    ++run.counts["controllers"];
    Beliefs beliefs = scenario.real_estimator ? estimator() : oracle.bind();
    YMIR_TRY_ASSIGN(const auto controller,
                    Controller::create(options, way, *log, *policy,
                                       watched(std::move(beliefs), world, scenario)));
    YMIR_TRY(controller->run());
    run.state = controller->state();
    run.counts["refused_reports"] += static_cast<std::int64_t>(controller->num_refused());
    if (!world.broken()) break;
    world.controller_restarted();
    faulty.controller_restarted();
  }
  YMIR_TRY(read_log(*log, run));
  run.counts["steps_lost"] = world.steps_lost();
  run.counts["lost_requests"] = static_cast<std::int64_t>(faulty.num_lost());
  run.counts["delayed_reports"] = static_cast<std::int64_t>(faulty.num_delayed());
  run.counts["doubled_reports"] = static_cast<std::int64_t>(faulty.num_doubled());
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    run.counts["steps_lost " + scenario.jobs[i].name] = world.steps_lost(JobId{i + 1});
  return run;
}

}  // namespace ymir
