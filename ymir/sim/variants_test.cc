// The ablations that differ in what the world costs, or in one link of the beliefs: each differs
// there and nowhere else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "ymir/core/codec.h"
#include "ymir/estimate/estimator.h"
#include "ymir/sim/command.h"
#include "ymir/sim/simulate.h"

namespace ymir {
namespace {

using testing::HasSubstr;

Workload a_workload() {
  return *generate_workload({.num_jobs = 14,
                             .num_gpus = 8,
                             .load = 1.2,
                             .seed = 3,
                             .median_seconds = 400,
                             .sigma = 0.8,
                             .useful_pairs = 0.4});
}

MakeBeliefs an_estimator() {
  return [] {
    const auto estimator = std::make_shared<Estimator>(*Estimator::create({}));
    Beliefs beliefs = bind(*estimator);
    beliefs.observe = [estimator, observe = beliefs.observe](
                          const Event& event, const Snapshot& after) { observe(event, after); };
    return beliefs;
  };
}

// The log under a policy; the policy's name is not in it.
std::string log_of(const std::string& policy, std::map<std::string, std::string> settings = {},
                   const MakeBeliefs& estimator = {}) {
  Scenario scenario = scenario_of(a_workload(), {.settings = std::move(settings)}, policy);
  scenario.real_estimator = static_cast<bool>(estimator);
  // What the estimator can only learn from transfers that were tried.
  for (ScenarioJob& job : scenario.jobs) job.spec.sharing.explore = true;
  const auto run = run_scenario(scenario, estimator);
  EXPECT_TRUE(run) << run.error().message;
  std::string text;
  for (const Event& event : run->log)
    if (!std::holds_alternative<DaemonStarted>(event.body)) text += encode_line(event) + "\n";
  return text;
}

TEST(Variants, WithoutAnEarlyLoaderEveryStartTakesItsTime) {
  const Workload workload = a_workload();
  const SimulateOptions options{.settings = {{"world.loader_s", "7"}}};

  const Scenario with = scenario_of(workload, options, "ymir");
  const Scenario without = scenario_of(workload, options, "ymir:no-early-loader");

  EXPECT_EQ((without.cluster.start_time - with.cluster.start_time).count(), 7);
  EXPECT_EQ((without.beliefs.start_time - with.beliefs.start_time).count(), 7);
  EXPECT_EQ(without.cluster.handover_time, with.cluster.handover_time);
  EXPECT_EQ(log_of("ymir:no-early-loader", {{"world.loader_s", "0"}}), log_of("ymir"));
  EXPECT_NE(log_of("ymir:no-early-loader"), log_of("ymir"));
}

// Milliseconds of the starts of `first` and of one that takes over its GPU when it ends.
std::vector<double> starts_of(const std::string& text, Seconds handover) {
  Scenario scenario = *parse_scenario("s", text);
  scenario.cluster.handover_time = handover;
  const auto run = run_scenario(scenario);
  EXPECT_TRUE(run);
  std::vector<double> starts;
  for (const Event& event : run->log)
    if (const auto* started = std::get_if<RunStarted>(&event.body))
      starts.push_back(started->milliseconds);
  return starts;
}

TEST(Variants, WithoutAPipelinedSwitchOnlyAHandOverTakesItsTime) {
  const std::string taken_over =
      "cluster nodes=1 gpus=1 policy=fifo round=60s profile=off start=2s\n"
      "job first at=0s steps=100\njob second at=1s steps=100\n";
  const std::string idle_between =
      "cluster nodes=1 gpus=1 policy=fifo round=60s profile=off start=2s\n"
      "job first at=0s steps=100\njob second at=300s steps=100\n";

  EXPECT_THAT(starts_of(taken_over, Seconds(5)), testing::ElementsAre(2000, 7000));
  EXPECT_THAT(starts_of(idle_between, Seconds(5)), testing::ElementsAre(2000, 2000));
  EXPECT_EQ(log_of("ymir:no-pipeline-switch", {{"world.handover_s", "0"}}), log_of("ymir"));
}

TEST(Variants, OfOneTrueLinkDifferFromTheEstimatorAndFromEachOther) {
  const MakeBeliefs estimator = an_estimator();
  std::set<std::string> logs{log_of("ymir", {}, estimator), log_of("ymir:oracle")};

  for (const char* link : {"similarity", "gain", "steps", "step_time"})
    EXPECT_TRUE(logs.insert(log_of("ymir:oracle-" + std::string(link), {}, estimator)).second)
        << link;
}

TEST(Variants, OfOneTrueLinkAreTheOracleWhereAllBeliefsAre) {
  EXPECT_EQ(log_of("ymir:oracle-gain"), log_of("ymir:oracle"));
}

TEST(Variants, RefuseACostThatIsNone) {
  const auto unknown = WorldCosts::from({{"world.loder_s", "1"}});
  const auto negative = WorldCosts::from({{"world.loader_s", "-1"}});

  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("knows world.loader_s"));
  EXPECT_FALSE(negative);
}

TEST(Variants, AreListedInOneLineEach) {
  const SimCommandOutput output = run_list_policies_command(false);

  for (const std::string& name : policy_names()) EXPECT_THAT(output.out, HasSubstr(name + " "));
  EXPECT_THAT(output.out, HasSubstr("tiresias@events-fixed"));
  EXPECT_THAT(run_list_policies_command(true).out, HasSubstr("\"name\":\"themis@titan\""));
}

}  // namespace
}  // namespace ymir
