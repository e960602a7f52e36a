// `ymir simulate --replay LOG`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/csv.h"
#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/core/codec.h"
#include "ymir/sim/command_parts.h"
#include "ymir/sim/metrics/check_run.h"
#include "ymir/sim/recorded_run.h"
#include "ymir/sim/replay_log.h"
#include "ymir/sim/report/tables.h"
#include "ymir/sim/run_files.h"

namespace ymir {

namespace {

Error wrong(const std::string& what) { return {ErrorCode::kInvalidArgument, what}; }

Result<> use_cluster(const SimulateCommand& command, Scenario& scenario,
                     std::vector<std::string>& notes) {
  if (command.nodes == 0 && command.gpus_per_node == 0) return Ok{};
  if (command.nodes < 1 || command.gpus_per_node < 1 || command.nodes > 100'000 ||
      command.gpus_per_node > 1024)
    return wrong("another cluster than the log's takes --nodes and --gpus-per-node");
  scenario.cluster.nodes.assign(static_cast<std::size_t>(command.nodes), command.gpus_per_node);
  const auto lost = std::erase_if(scenario.actions, [](const ScenarioAction& action) {
    return action.kind == ScenarioAction::Kind::kLose;
  });
  if (lost > 0) notes.push_back(fmt::format("{} losses of the log's nodes are left out", lost));
  return Ok{};
}

// What is known of the jobs alone: the time of a step on so many GPUs, and how many it took.
SoloTruth solo_truth(const Scenario& scenario, const JobModel& model, const RunRecord& record) {
  SoloTruth truth{.start_s = scenario.cluster.start_time.count()};
  std::vector<JobId> ids;
  for (const JobRecord& job : record.jobs) {
    const auto known = std::ranges::find(scenario.jobs, job.name, &ScenarioJob::name);
    const bool there = known != scenario.jobs.end();
    ids.push_back(there ? JobId{static_cast<std::uint64_t>(known - scenario.jobs.begin()) + 1}
                        : JobId{});
    truth.min_gpus.push_back(there ? known->spec.min_gpus : 1);
    truth.max_gpus.push_back(there ? known->spec.max_gpus : 1);
  }
  truth.seconds = [ids, &model](std::size_t i, int gpus) {
    return ids[i] ? static_cast<double>(model.job(ids[i]).steps) *
                        model.step_time(ids[i], gpus).count()
                  : std::nan("");
  };
  return truth;
}

FinishedRun finished(RunRecord record, const std::vector<Event>& log, const Scenario& scenario,
                     const std::string& config) {
  FinishedRun run{.record = std::move(record), .config = config};
  const JobModel model = model_of(scenario);
  const SoloTruth solo = solo_truth(scenario, model, run.record);
  run.summary = summarise(run.record, {.solo = &solo});
  run.summary.broken = check_run(run.record, {.until_horizon = true, .real_workers = true});
  run.pairs = pairs_csv(run.record, nullptr);
  for (const Event& event : log) run.events += encode_line(event) + "\n";
  return run;
}

Result<FinishedRun> live_through(const Scenario& scenario, const MakeBeliefs& estimator,
                                 std::string& csv, std::string& text,
                                 const std::vector<Event>& log) {
  YMIR_TRY_ASSIGN(ScenarioRun run, run_scenario(scenario, estimator));
  Workload names;
  for (const ScenarioJob& job : scenario.jobs)
    names.jobs.push_back({.name = job.name, .backbone = job.spec.model, .gpus = job.spec.min_gpus});
  RunRecord record = record_of(run.log, run.state, names, true);
  record.policy = scenario.policy;
  record.seed = scenario.cluster.seed;
  record.solve_ms = run.solve_ms;
  const ReplayReport report = compare_replay(log, scenario, run);
  for (const ReplayedJob& job : report.jobs)
    csv +=
        fmt::format("{},{},{},{},{},{}\n", scenario.policy, csv_field(job.name),
                    job.recorded_start_s, job.simulated_start_s, job.recorded_s, job.simulated_s);
  text += fmt::format("{:<20} {:>5} {:>12.1f} {:>12.1f} {:>12.1f} {:>12.1f} {:>9.1f}% {:>7.2f}\n",
                      scenario.policy, report.jobs.size(), report.recorded_avg_s,
                      report.simulated_avg_s, report.recorded_p99_s, report.simulated_p99_s,
                      100 * report.worst, report.order);
  return finished(std::move(record), run.log, scenario,
                  canonical(Json{{"policy", scenario.policy},
                                 {"replayed", true},
                                 {"round_s", scenario.controller.round.count()},
                                 {"seed", scenario.cluster.seed},
                                 {"settings", scenario.settings},
                                 {"beliefs", scenario.real_estimator ? "estimator" : "oracle"}}));
}

Result<SimCommandOutput> replayed(const SimulateCommand& command, const std::vector<Event>& log,
                                  const MakeBeliefs& estimator) {
  if (command.out.empty()) return wrong("no folder for the results");
  TruthOptions unused;
  YMIR_TRY_ASSIGN(const SimulateOptions options, options_of(command, unused));
  YMIR_TRY_ASSIGN(Scenario scenario, scenario_of_log(log));
  YMIR_TRY_ASSIGN(RunRecord recorded, record_of_recorded(log));
  SimulationReport report{.name = command.workload, .baseline = "recorded"};
  YMIR_TRY(use_cluster(command, scenario, report.warnings));
  scenario.settings = policy_settings(options.settings);
  scenario.cluster.seed = options.seeds.front();
  if (options.interval.count() > 0) scenario.controller.round = options.interval;
  std::vector<std::string> policies = command.policies;
  if (policies.empty()) policies = {scenario.policy};
  for (const std::string& policy : policies) YMIR_TRY(make_policy(policy, scenario.settings));

  std::vector<FinishedRun> runs;
  runs.push_back(finished(std::move(recorded), log, scenario, "{\"policy\":\"recorded\"}"));
  std::string csv =
      "policy,job,recorded_start_s,simulated_start_s,recorded_jct_s,simulated_jct_s\n";
  SimCommandOutput output{.out =
                              fmt::format("{:<20} {:>5} {:>12} {:>12} {:>12} {:>12} {:>10} {:>7}\n",
                                          "policy", "jobs", "recorded avg", "simulated",
                                          "recorded p99", "simulated", "worst", "order")};
  for (const std::string& policy : policies) {
    scenario.policy = policy;
    scenario.real_estimator = estimator && !command.oracle && policy != "ymir:oracle";
    YMIR_TRY_ASSIGN(FinishedRun run, live_through(scenario, estimator, csv, output.out, log));
    runs.push_back(std::move(run));
  }
  report.config = runs.back().config;
  YMIR_TRY(make_folders(command.out));
  for (const FinishedRun& run : runs) {
    YMIR_TRY(write_run(command.out, run, true));
    for (const std::string& fault : run.summary.broken) {
      output.exit_code = 1;
      output.err += fmt::format("ymir: {}: {}\n", run.record.policy, fault);
    }
  }
  YMIR_TRY(write_file(command.out + "/replay.csv", csv));
  for (const std::string& note : report.warnings) output.err += "warning: " + note + "\n";
  YMIR_TRY(write_comparison(std::move(report), runs, command.out));
  return output;
}

}  // namespace

SimCommandOutput run_replay_command(const SimulateCommand& command, const std::vector<Event>& log,
                                    const MakeBeliefs& estimator) {
  auto output = replayed(command, log, estimator);
  return output ? *std::move(output) : failure_of(output.error());
}

}  // namespace ymir
