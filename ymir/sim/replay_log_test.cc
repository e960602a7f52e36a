#include "ymir/sim/replay_log.h"

#include <gtest/gtest.h>

namespace ymir {
namespace {

Scenario parsed(const std::string& text) {
  const auto scenario = parse_scenario("recorded", text);
  EXPECT_TRUE(scenario) << scenario.error().message;
  return *scenario;
}

TEST(ReplayLog, LivesThroughARecordedLogWithTheSameCompletionTimes) {
  const Scenario recorded = parsed(
      "cluster nodes=2 gpus=2 policy=srtf round=60s profile=off start=4s\n"
      "job a at=0s steps=300 epoch=30 gpus=2\n"
      "job b at=10s steps=100 epoch=10 step=0.5s\n"
      "job c at=100s steps=50 epoch=10 gpus=2\n"
      "job d at=130s steps=80 epoch=10\n"
      "at 200s lose node0 until 300s\n");
  const auto run = run_scenario(recorded);
  ASSERT_TRUE(run);

  const auto again = scenario_of_log(run->log);
  ASSERT_TRUE(again) << again.error().message;
  Scenario replayed = *again;
  replayed.controller.profiling.enabled = false;
  const auto rerun = run_scenario(replayed);

  ASSERT_TRUE(rerun) << rerun.error().message;
  const ReplayReport report = compare_replay(run->log, replayed, *rerun);
  ASSERT_EQ(report.jobs.size(), 4u);
  EXPECT_LT(report.worst, 0.02);
  EXPECT_NEAR(report.order, 1, 1e-9);
}

TEST(ReplayLog, ShowsThatAnotherPolicyWouldHaveEndedOthersFirst) {
  const Scenario recorded = parsed(
      "cluster nodes=1 gpus=1 policy=fifo round=60s profile=off\n"
      "job long at=0s steps=1000\n"
      "job short at=60s steps=50\n");
  const auto run = run_scenario(recorded);
  ASSERT_TRUE(run);

  Scenario other = *scenario_of_log(run->log);
  other.policy = "srtf";
  other.controller.profiling.enabled = false;
  const auto rerun = run_scenario(other);

  ASSERT_TRUE(rerun);
  const ReplayReport report = compare_replay(run->log, other, *rerun);
  ASSERT_EQ(report.jobs.size(), 2u);
  EXPECT_GT(report.worst, 0.5) << "the short one does not wait any more";
  EXPECT_LT(report.simulated_avg_s, report.recorded_avg_s);
}

TEST(ReplayLog, RefusesALogWithoutJobs) {
  const auto empty = scenario_of_log({});

  EXPECT_FALSE(empty);
}

}  // namespace
}  // namespace ymir
