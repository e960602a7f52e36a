#include "ymir/schedule/budget_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/schedule/test_round.h"

namespace ymir {
namespace {

using testing::HasSubstr;

TEST(Fifo, StartsInTheOrderOfSubmissionAndStopsAtTheFirstThatDoesNotFit) {
  TestRound test({4});
  test.job(1, 2, 2);
  test.job(2, 4, 4);
  test.job(3, 1, 1);
  test.alone(1, 2, 100);
  test.alone(2, 4, 10);
  test.alone(3, 1, 10);

  const Plan plan = plan_by("fifo", test);

  EXPECT_EQ(in_short(plan), "j1x2");
  EXPECT_EQ(why_waits(plan, 2), "no_capacity gpus=4 free=2");
  EXPECT_EQ(why_waits(plan, 3), "behind j2");
}

TEST(FifoBackfill, FillsTheGapBehindAJobThatDoesNotFit) {
  TestRound test({4});
  test.job(1, 2, 2);
  test.job(2, 4, 4);
  test.job(3, 1, 1);
  test.alone(1, 2, 100);
  test.alone(2, 4, 10);
  test.alone(3, 1, 10);

  const Plan plan = plan_by("fifo:backfill", test);

  EXPECT_EQ(in_short(plan), "j1x2 j3x1");
}

TEST(Fifo, NeverStopsWhatRuns) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.cluster.jobs.at(JobId{2}).submitted = from_seconds(1);
  test.alone(1, 1, 1000);
  test.alone(2, 1, 1);
  test.runs_alone(1, 1);

  const Plan plan = plan_by("fifo", test);

  EXPECT_EQ(in_short(plan), "j1x1");
}

TEST(Srtf, GivesTheGpusToTheJobThatEndsFirst) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 1000);
  test.alone(2, 1, 100);
  test.runs_alone(1, 1);

  const Plan plan = plan_by("srtf", test);

  EXPECT_EQ(in_short(plan), "j2x1");
}

TEST(Srtf, PreemptsNobodyForLessThanTheRestartCosts) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 103, 5);
  test.alone(2, 1, 100);
  test.runs_alone(1, 1);

  const Plan plan = plan_by("srtf", test);

  EXPECT_EQ(in_short(plan), "j1x1");
}

TEST(Sjf, PrefersTheShortJobButStopsNobody) {
  TestRound test({2});
  test.job(1);
  test.job(2);
  test.job(3);
  test.alone(1, 1, 1000);
  test.alone(2, 1, 500);
  test.alone(3, 1, 100);
  test.runs_alone(1, 1);

  const Plan plan = plan_by("sjf", test);

  EXPECT_EQ(in_short(plan), "j1x1 j3x1");
}

TEST(Srsf, WeighsTimeByGpus) {
  TestRound test({4});
  test.job(1, 4, 4);
  test.job(2, 1, 1);
  test.alone(1, 4, 100);
  test.alone(2, 1, 300);

  const Plan plan = plan_by("srsf", test);

  EXPECT_EQ(in_short(plan), "j2x1");
}

TEST(BudgetWalk, TellsAJobThatIsTooLargeForEveryNode) {
  TestRound test({2, 2});
  test.job(1, 4, 4);
  test.alone(1, 4, 100);

  const Plan plan = plan_by("srtf", test);

  EXPECT_EQ(why_waits(plan, 1), "does_not_fit_a_node gpus=4 largest=2");
}

TEST(BudgetWalk, LetsAJobWaitThatFindsNoSingleNode) {
  TestRound test({2, 2});
  for (std::uint64_t id : {1, 2, 3}) {
    test.job(id, 2, id == 3 ? 2 : 1);
    test.cluster.jobs.at(JobId{id}).spec.sizes = {id == 3 ? 2 : 1};
    test.alone(id, id == 3 ? 2 : 1, 100);
  }
  test.runs_alone(1, 1).place = PlaceId{1};
  test.runs_alone(2, 1).place = PlaceId{2};

  const Plan plan = plan_by("fifo", test);

  EXPECT_EQ(in_short(plan), "j1x1 j2x1 j3x2") << "moving one makes room";
}

TEST(MakePolicy, NamesTheKnownPoliciesAndSettings) {
  const auto unknown = make_policy("fifi");
  const auto setting = make_policy("fifo", {{"hysteresis", "on"}});

  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("srtf"));
  ASSERT_FALSE(setting);
  EXPECT_EQ(setting.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ymir
