// A workload under one policy as a scenario: who may have how many GPUs, what is believed.
#include <algorithm>

#include "ymir/base/text.h"
#include "ymir/sim/simulate.h"

namespace ymir {

namespace {

bool is_about_beliefs(const std::string& key) { return key.starts_with("error."); }
bool is_about_the_world(const std::string& key) { return key.starts_with("world."); }

// The tricks that a variant goes without.
void add_costs(const std::string& policy, const WorldCosts& costs, Scenario& scenario) {
  if (policy == "ymir:no-early-loader") {
    const Seconds loader(costs.loader_s);
    scenario.cluster.start_time += loader;
    for (ScenarioJob& job : scenario.jobs)
      if (job.truth.start_time.count() >= 0) job.truth.start_time += loader;
  }
  if (policy == "ymir:no-pipeline-switch")
    scenario.cluster.handover_time = Seconds(costs.handover_s);
}

JobSpec spec_of(const WorkloadJob& given, const JobTruth& truth, bool elastic, int most) {
  JobSpec spec{.name = given.name, .model = given.backbone};
  spec.method.targets = {"query", "value"};
  spec.target = {"accuracy", truth.target_metric};
  spec.stop = {.max_epochs = 0, .max_steps = given.max_steps};
  spec.min_gpus = elastic ? given.min_gpus : std::min(given.gpus, most);
  spec.max_gpus = elastic ? std::min(given.max_gpus, most) : spec.min_gpus;
  if (elastic)  // only what was measured
    for (const StepTimes::Row& row : given.table.rows)
      if (row.gpus >= spec.min_gpus && row.gpus <= spec.max_gpus &&
          (spec.sizes.empty() || spec.sizes.back() != row.gpus))
        spec.sizes.push_back(row.gpus);
  spec.sharing.allow = given.share;
  spec.sharing.trust_domain = given.domain;
  spec.sharing.max_wait_for_partner = Seconds(1200);
  spec.checkpoint_every = Seconds(0);  // no worker dies here, and a stop commits
  return spec;
}

void add_gains(const Workload& workload, Scenario& scenario) {
  for (const auto& [pair, gain] : workload.temporal)
    if (const std::size_t arrow = pair.find('>'); arrow != std::string::npos)
      scenario.family_temporal[{pair.substr(0, arrow), pair.substr(arrow + 1)}] = gain;
  for (const auto& [pair, v] : workload.spatial)
    if (const std::size_t plus = pair.find('+'); plus != std::string::npos)
      scenario.family_spatial[{pair.substr(0, plus), pair.substr(plus + 1)}] = {v[0], v[1], v[2]};
}

// A run spans nodes only where some job is wider than one.
bool needs_to_span(const Workload& workload, bool elastic, int slots) {
  return std::ranges::any_of(workload.jobs, [&](const WorkloadJob& job) {
    return (elastic ? job.max_gpus : job.gpus) > slots;
  });
}

}  // namespace

Result<OracleErrors> errors_of(const std::map<std::string, std::string>& settings,
                               std::uint64_t seed) {
  OracleErrors errors{.seed = seed};
  for (const auto& [key, value] : settings) {
    if (!is_about_beliefs(key)) continue;
    YMIR_TRY_ASSIGN(const bool known, errors.read(key, value));
    if (!known)
      return Error{ErrorCode::kInvalidArgument,
                   key + "=" + value + ": knows error.gain, error.steps, error.step_time"};
  }
  return errors;
}

std::map<std::string, std::string> policy_settings(std::map<std::string, std::string> settings) {
  std::erase_if(settings, [](const auto& entry) {
    return is_about_beliefs(entry.first) || is_about_the_world(entry.first);
  });
  return settings;
}

Result<WorldCosts> WorldCosts::from(const std::map<std::string, std::string>& settings) {
  WorldCosts costs;
  for (const auto& [key, text] : settings) {
    if (!is_about_the_world(key)) continue;
    const auto value = parse_double(text);
    const bool loader = key == "world.loader_s";
    if (!loader && key != "world.handover_s")
      return Error{ErrorCode::kInvalidArgument,
                   key + "=" + text + ": knows world.loader_s, world.handover_s"};
    if (!value || !(*value >= 0 && *value <= 3600))
      return Error{ErrorCode::kInvalidArgument, key + "=" + text + ": must be in 0..3600 s"};
    (loader ? costs.loader_s : costs.handover_s) = *value;
  }
  return costs;
}

Scenario scenario_of(const Workload& workload, const SimulateOptions& options,
                     const std::string& policy) {
  Scenario scenario{
      .name = "workload", .policy = policy, .settings = policy_settings(options.settings)};
  const int nodes = options.nodes > 0 ? options.nodes : workload.nodes;
  const int slots = options.gpus_per_node > 0 ? options.gpus_per_node : workload.gpus_per_node;
  const bool elastic = is_elastic(policy);
  scenario.cluster.nodes.assign(static_cast<std::size_t>(nodes), slots);
  scenario.cluster.one_place = needs_to_span(workload, elastic, slots);
  scenario.cluster.seed = options.seeds.front();
  scenario.cluster.start_time = Seconds(15);
  scenario.controller.round = options.interval.count() > 0 ? options.interval : Seconds(120);
  scenario.controller.round_on_events = false;  // as every cluster simulator: at the rounds only
  const int most = scenario.cluster.one_place ? nodes * slots : slots;
  for (const WorkloadJob& given : workload.jobs) {
    ScenarioJob job{.name = given.name, .at = from_seconds(given.at)};
    job.truth = truth_of(given);
    job.truth.noise = options.noise;
    job.spec = spec_of(given, job.truth, elastic, most);
    scenario.jobs.push_back(std::move(job));
  }
  add_gains(workload, scenario);
  if (const auto costs = WorldCosts::from(options.settings)) add_costs(policy, *costs, scenario);
  scenario.beliefs.start_time = scenario.cluster.start_time;
  scenario.beliefs.pairs = policy.starts_with("ymir") && policy != "ymir:no-transfer";
  scenario.beliefs.declared = policy == "ymir:no-estimator";
  if (const auto errors = errors_of(options.settings, options.seeds.front());
      errors && policy != "ymir:oracle")
    scenario.beliefs.errors = *errors;
  // Who never pairs needs no profile: its time estimates are those of the tables.
  scenario.controller.profiling.enabled = scenario.beliefs.pairs;
  return scenario;
}

}  // namespace ymir
