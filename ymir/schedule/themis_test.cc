#include "ymir/schedule/themis.h"

#include <gtest/gtest.h>

#include "ymir/schedule/test_round.h"

namespace ymir {
namespace {

Plan decided(const TestRound& test) { return plan_by("themis", test); }

// Two equal jobs and one GPU; the first waits since 900 s, the second since 100 s.
TestRound two_on_one_gpu() {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 1005);
  test.alone(2, 1, 1005);
  test.cluster.jobs.at(JobId{1}).submitted = from_seconds(100);
  test.cluster.jobs.at(JobId{2}).submitted = from_seconds(900);
  return test;
}

TEST(Themis, ServesTheJobThatIsFurthestBehindItsFairShare) {
  // Both have 1000 s left of 1000; j1 has waited 900 s, j2 100 s. rho = (age + left / x) / 2000:
  // with x1 + x2 = 1 the shares are 0.631 and 0.369 (900 + 1000/x1 = 100 + 1000/x2).
  TestRound test = two_on_one_gpu();

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1");
  ASSERT_EQ(plan.memory.size(), 2u);
  const double x1 = plan.memory[0].values[6], x2 = plan.memory[1].values[6];
  EXPECT_NEAR(x1 + x2, 1, 1e-9);
  EXPECT_NEAR(900 + 1000 / x1, 100 + 1000 / x2, 1e-6);
}

TEST(Themis, GivesWayWhenAJobHasReceivedItsShare) {
  TestRound test = two_on_one_gpu();
  const Plan first = decided(test);
  test.cluster.wish = PlanAdopted{.round = 1, .plan = first};
  test.runs_alone(1, 1);
  test.cluster.now = from_seconds(1120);

  const Plan second = decided(test);

  EXPECT_EQ(in_short(second), "j2x1") << "j1 had all of the last round";
}

TEST(Themis, CountsTheWorkDoneAgainstAnExclusiveShare) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 1005);
  test.alone(2, 1, 1005);
  test.cluster.wish = PlanAdopted{.round = 1, .plan = decided(test)};
  test.cluster.now = from_seconds(1120);
  test.forecast.candidates[0].members[0].finish_in = Interval::exactly(885);  // 120 s done

  const Plan plan = decided(test);

  EXPECT_NEAR(plan.memory[0].values[0], 240, 1e-9) << "two jobs: half of the GPU, twice as long";
}

TEST(Themis, RunsEverybodyWhenAllFit) {
  TestRound test({4});
  test.job(1, 2, 2);
  test.job(2);
  test.alone(1, 2, 500);
  test.alone(2, 1, 500);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x2 j2x1");
}

}  // namespace
}  // namespace ymir
