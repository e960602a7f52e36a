#include "ymir/schedule/tiresias.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/schedule/test_round.h"

namespace ymir {
namespace {

using testing::HasSubstr;

Plan decided(const TestRound& test, const std::map<std::string, std::string>& settings = {}) {
  return plan_by("tiresias", test, settings);
}

// Has held GPUs for so many GPU-seconds before, and waits now.
void was_served(TestRound& test, std::uint64_t id, double gpu_seconds, double first_start_s) {
  JobView& job = test.cluster.jobs.at(JobId{id});
  job.busy = Seconds(gpu_seconds);
  job.first_started = from_seconds(first_start_s);
  job.state = JobState::kPreempted;
}

TEST(Tiresias, PutsTheLeastServedFirst) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 10);
  test.alone(2, 1, 9000);
  was_served(test, 1, 14'400, 0);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j2x1") << "service counts, not the time left";
}

TEST(Tiresias, CountsGpuSecondsOfTheRunUnderWay) {
  TestRound test({4});
  test.cluster.now = from_seconds(5000);
  test.job(1, 4, 4);
  test.job(2, 4, 4);
  test.alone(1, 4, 1000);
  test.alone(2, 4, 1000);
  was_served(test, 1, 0, 1000);
  test.runs_alone(1, 4).started = from_seconds(5000 - 3601);  // 4 x 3601 > 14,400

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j2x4");
}

TEST(Tiresias, PreemptsNobodyForAnEqualOfItsQueue) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 1000);
  test.alone(2, 1, 1000);
  was_served(test, 1, 3000, 10);
  was_served(test, 2, 100, 5);
  test.runs_alone(1, 1);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1");
}

TEST(Tiresias, ServesThoseOfOneQueueByTheirFirstStartThenTheNewBySubmission) {
  TestRound test({2});
  for (std::uint64_t id : {1, 2, 3, 4}) {
    test.job(id);
    test.alone(id, 1, 1000);
  }
  was_served(test, 3, 50, 200);
  was_served(test, 4, 10, 100);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j3x1 j4x1");
}

TEST(Tiresias, BackfillsBehindAGangThatDoesNotFit) {
  TestRound test({2});
  test.job(1, 2, 2);
  test.job(2);
  test.job(3);
  test.alone(1, 2, 10);
  test.alone(2, 1, 10);
  test.alone(3, 1, 10);
  was_served(test, 2, 5, 3);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j2x1 j3x1");
  EXPECT_EQ(why_waits(plan, 1), "no_capacity gpus=2 free=1");
}

TEST(Tiresias, PromotesOneThatWaitedLongAgainstItsRunAndRemembersThat) {
  TestRound test({1});
  test.cluster.now = from_seconds(100'000);
  test.job(1);
  test.job(2);
  test.alone(1, 1, 5000);
  test.alone(2, 1, 5000);
  was_served(test, 1, 15'000, 0);  // ran 15,000 s, waited 85,000 s since
  test.cluster.jobs.at(JobId{2}).submitted = from_seconds(99'000);

  const Plan never = decided(test);
  const Plan promoted = decided(test, {{"tiresias.promote", "5"}});
  TestRound later = test;
  later.cluster.wish = PlanAdopted{.round = 1, .plan = promoted};
  later.runs_alone(2, 1);
  const Plan after = decided(later, {{"promote", "5"}});

  EXPECT_EQ(in_short(never), "j2x1");
  EXPECT_EQ(in_short(promoted), "j1x1") << "85,000 >= 5 x 15,000: back in the first queue";
  ASSERT_EQ(promoted.memory.size(), 1u);
  EXPECT_THAT(promoted.memory[0].values, testing::ElementsAre(15'000, 15'000, 85'000));
  EXPECT_EQ(in_short(after), "j2x1") << "both in the first queue now, j2 runs";
  EXPECT_EQ(after.memory.size(), 1u) << "carried on";
}

TEST(Tiresias, HasThePublishedConstantsAsPresets) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 10);
  test.alone(2, 1, 10);
  was_served(test, 1, 18'000, 0);

  const Plan titan = decided(test, {{"preset", "titan"}});
  const Plan lucid = decided(test, {{"preset", "lucid"}});

  EXPECT_EQ(in_short(titan), "j2x1");
  EXPECT_EQ(in_short(lucid), "j1x1") << "lucid demotes above its limit, not at it";
}

TEST(Tiresias, NamesTheNearestSettingForAnUnknownOne) {
  const auto wrong_key = make_policy("tiresias", {{"tiresias.promot", "1"}});
  const auto wrong_value = make_policy("tiresias", {{"limits", "10,5"}});
  const auto of_another = make_policy("tiresias", {{"srtf.hysteresis", "off"}});

  ASSERT_FALSE(wrong_key);
  EXPECT_THAT(wrong_key.error().message, HasSubstr("did you mean promote"));
  ASSERT_FALSE(wrong_value);
  EXPECT_THAT(wrong_value.error().message, HasSubstr("grow"));
  EXPECT_TRUE(of_another) << "settings of other policies are left to them";
}

}  // namespace
}  // namespace ymir
