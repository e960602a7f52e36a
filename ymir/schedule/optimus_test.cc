#include "ymir/schedule/optimus.h"

#include <gtest/gtest.h>

#include "ymir/base/rng.h"
#include "ymir/schedule/test_round.h"

namespace ymir {
namespace {

Plan decided(const TestRound& test) { return plan_by("optimus", test); }

TEST(Optimus, GivesEveryJobItsSmallestSizeFirst) {
  TestRound test({2});
  test.job(1, 2);
  test.job(2, 2);
  test.alone_at_all_sizes(1, 100'000);
  test.alone_at_all_sizes(2, 10);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1 j2x1");
}

TEST(Optimus, GivesTheNextGpusWhereTheySaveMostSeconds) {
  TestRound test({4});
  test.job(1, 4);
  test.job(2, 4);
  test.alone_at_all_sizes(1, 1000);
  test.alone_at_all_sizes(2, 100);

  const Plan plan = decided(test);

  // j1: 1 -> 2 saves 500 for one GPU. Then one is left: j2's 50, as j1 would need two.
  EXPECT_EQ(in_short(plan), "j1x2 j2x2");
}

TEST(Optimus, StopsWhereAJobGainsNothing) {
  TestRound test({4});
  test.job(1, 4);
  test.alone(1, 1, 100);
  test.alone(1, 2, 60);
  test.alone(1, 4, 65);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x2");
}

TEST(Optimus, ServesByTheOrderOfSubmissionWhenNotAllFit) {
  TestRound test({2});
  for (std::uint64_t id : {1, 2, 3}) {
    test.job(id);
    test.alone(id, 1, 100);
  }
  test.cluster.jobs.at(JobId{3}).submitted = from_seconds(1);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1 j3x1");
  EXPECT_EQ(why_waits(plan, 2), "no_capacity gpus=1 free=0");
}

// The rule written the slow way: look at everybody before each step.
TEST(Optimus, EqualsTheRuleTakenLiterallyOnRandomRounds) {
  Rng rng(5);
  for (int repeat = 0; repeat < 50; ++repeat) {
    TestRound test({16});
    const std::uint64_t num_jobs = 1 + rng.below(8);
    std::vector<std::vector<double>> seconds(num_jobs);
    for (std::uint64_t id = 1; id <= num_jobs; ++id) {
      test.job(id, 1 << rng.below(4));
      double now = rng.uniform(10, 5000);
      for (int gpus = 1; gpus <= test.cluster.jobs.at(JobId{id}).spec.max_gpus; gpus *= 2) {
        test.alone(id, gpus, now + 5);  // 5: the start, which does not count
        seconds[id - 1].push_back(now);
        now *= rng.uniform(0.45, 1.05);
      }
    }
    std::vector<std::size_t> size(num_jobs, 0);
    int free = 16 - static_cast<int>(num_jobs);
    while (true) {
      double most = 0;
      std::size_t who = num_jobs;
      for (std::size_t i = 0; i < num_jobs; ++i) {
        const int more = 1 << size[i];
        if (size[i] + 1 >= seconds[i].size() || more > free) continue;
        const double gain = (seconds[i][size[i]] - seconds[i][size[i] + 1]) / more;
        if (gain > most) {
          most = gain;
          who = i;
        }
      }
      if (who == num_jobs) break;
      free -= 1 << size[who];
      ++size[who];
    }

    const Plan plan = decided(test);

    ASSERT_EQ(plan.assignments.size(), num_jobs);
    for (std::size_t i = 0; i < num_jobs; ++i)
      EXPECT_EQ(plan.assignments[i].what.gpus, 1 << size[i]) << "repeat " << repeat;
  }
}

}  // namespace
}  // namespace ymir
