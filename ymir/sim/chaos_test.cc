// Whatever happens, in whatever order: each job ends once, no slot is used twice, the log folds to
// the state that the controller had, and the same seed gives the same log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ymir/base/text.h"
#include "ymir/core/codec.h"
#include "ymir/sim/scenario.h"

namespace ymir {
namespace {

using testing::IsEmpty;

// A cluster, jobs, gains (believed and true, often not the same), commands and faults by chance.
// All times are multiplied by `stretch`.
Scenario by_chance(std::uint64_t seed, double stretch = 1) {
  Rng rng(seed);
  Scenario scenario;
  scenario.name = "chaos " + std::to_string(seed);
  scenario.policy =
      std::vector<std::string>{"ymir",   "ymir",    "ymir", "ymir:no-estimator", "srtf", "tiresias",
                               "themis", "optimus", "fifo"}[rng.below(9)];
  scenario.cluster.nodes.assign(1 + rng.below(3), 1 << rng.below(3));
  scenario.cluster.horizon = from_seconds(400'000 * stretch);
  scenario.controller.round = Seconds(rng.uniform(20, 200) * stretch);
  scenario.controller.profiling.enabled = rng.chance(0.7);
  const std::uint64_t num_jobs = 2 + rng.below(8);
  for (std::uint64_t i = 1; i <= num_jobs; ++i) {
    ScenarioJob job{.name = "j" + std::to_string(i),
                    .at = from_seconds(rng.uniform(0, 300) * stretch)};
    job.truth.steps = rng.between(5, 300);
    job.truth.steps_per_epoch = rng.between(1, 40);
    job.truth.max_steps = job.truth.steps * 3;
    job.truth.step_time = Seconds(rng.uniform(0.2, 2) * stretch);
    job.spec.name = job.name;
    job.spec.model = rng.chance(0.7) ? "one" : "other";
    job.spec.target = {"accuracy", rng.chance(0.9) ? 0.9 : 2};
    job.spec.max_gpus = static_cast<int>(1 + rng.below(scenario.cluster.nodes.size()));
    job.spec.sharing.allow = rng.chance(0.85);
    job.spec.sharing.max_wait_for_partner = Seconds(rng.uniform(0, 900) * stretch);
    job.spec.checkpoint_every = Seconds(rng.uniform(5, 100) * stretch);
    scenario.jobs.push_back(std::move(job));
  }
  for (std::uint64_t a = 1; a <= num_jobs; ++a)
    for (std::uint64_t b = 1; b <= num_jobs; ++b) {
      if (a != b && rng.chance(0.5)) scenario.temporal[{JobId{a}, JobId{b}}] = rng.uniform(-0.5, 2);
      if (a != b && rng.chance(0.3))
        scenario.beliefs.temporal[{JobId{a}, JobId{b}}] = rng.uniform(-0.5, 2);
      if (a < b && rng.chance(0.5))
        scenario.spatial[{JobId{a}, JobId{b}}] = {rng.uniform(-0.5, 1), rng.uniform(-0.5, 1),
                                                  rng.uniform(1, 2)};
      if (a < b && rng.chance(0.3))
        scenario.beliefs.spatial[{JobId{a}, JobId{b}}] = {rng.uniform(0, 1), rng.uniform(0, 1),
                                                          1.1};
    }
  const std::uint64_t num_actions = rng.below(10);
  for (std::uint64_t i = 0; i < num_actions; ++i) {
    using Kind = ScenarioAction::Kind;
    ScenarioAction action{.kind = static_cast<Kind>(rng.below(6)),
                          .at = from_seconds(rng.uniform(1, 900) * stretch),
                          .job = JobId{1 + rng.below(num_jobs)},
                          .node = static_cast<int>(rng.below(scenario.cluster.nodes.size()))};
    if (action.kind == Kind::kLose)
      action.until = action.at + Seconds(rng.uniform(1, 200) * stretch);
    scenario.actions.push_back(action);
    if (action.kind == Kind::kHold)  // nobody is forgotten
      scenario.actions.push_back({.kind = Kind::kRelease,
                                  .at = action.at + Seconds(rng.uniform(1, 400) * stretch),
                                  .job = action.job});
  }
  scenario.faulty = rng.chance(0.5);
  scenario.faults = {.seed = seed,
                     .lose_request = rng.uniform(0, 0.3),
                     .delay_report = rng.uniform(0, 0.5),
                     .longest_delay = Seconds(rng.uniform(0, 20)),
                     .double_report = rng.uniform(0, 0.3),
                     .slow_decision = rng.uniform(0, 0.3),
                     .longest_decision = Seconds(rng.uniform(0, 60))};
  scenario.beliefs.start_time = scenario.cluster.start_time;
  scenario.beliefs.declared = scenario.policy == "ymir:no-estimator";
  return scenario;
}

std::string trails(const Scenario& scenario, const ScenarioRun& run) {
  std::string text;
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    text += scenario.jobs[i].name + ": " + join(trail_of(scenario, run, JobId{i + 1}), " ") + "\n";
  return text;
}

std::string whole_log(const ScenarioRun& run) {
  std::string text;
  for (const Event& event : run.log) text += encode_line(event) + "\n";
  return text;
}

class Chaos : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Chaos, EndsEachJobOnceAndTheSameTwice) {
  for (std::uint64_t seed = GetParam() * 15; seed < (GetParam() + 1) * 15; ++seed) {
    const Scenario scenario = by_chance(seed);

    const auto run = run_scenario(scenario);
    const auto again = run_scenario(scenario);

    ASSERT_TRUE(run) << "seed " << seed << ": " << run.error().message;
    ASSERT_TRUE(again);
    EXPECT_THAT(check_invariants(scenario, *run), IsEmpty()) << "seed " << seed << "\n"
                                                             << trails(scenario, *run);
    EXPECT_TRUE(whole_log(*run) == whole_log(*again)) << "seed " << seed;
  }
}

// Simulated days with broken things in them; each run is judged like those above.
void hold_for_days(double days, std::uint64_t first_seed) {
  double lived = 0;
  for (std::uint64_t seed = first_seed; lived < days; ++seed) {
    const Scenario scenario = by_chance(seed, 300);

    const auto run = run_scenario(scenario);

    ASSERT_TRUE(run) << "seed " << seed << ": " << run.error().message;
    ASSERT_THAT(check_invariants(scenario, *run), IsEmpty()) << "seed " << seed << "\n"
                                                             << trails(scenario, *run);
    lived += to_seconds(run->state.now) / 86'400;
  }
}

TEST(ChaosDays, BreakNoInvariantInAHundred) { hold_for_days(100, 1000); }

TEST(ChaosDays, BreakNoInvariantInTenThousand) {
  if (std::getenv("YMIR_NIGHTLY") == nullptr)
    GTEST_SKIP() << "10,000 simulated days: set YMIR_NIGHTLY";
  hold_for_days(10'000, 100'000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, testing::Range<std::uint64_t>(0, 6));

}  // namespace
}  // namespace ymir
