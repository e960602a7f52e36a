#include "ymir/optimize/check.h"

#include <gtest/gtest.h>

#include "ymir/optimize/planner.h"
#include "ymir/optimize/test_instances.h"

namespace ymir {
namespace {

// A problem whose certificate has everything: prices, an odd set, a pair, an idle job.
RoundProblem rich_problem() {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{3, {}}});
  for (int j = 0; j < 5; ++j) problem.add_job(j + 1, std::vector<Option>{{3 + j, 1, 0, 0}});
  for (int j = 0; j < 5; ++j) {
    problem.add_pair(j, (j + 1) % 5, std::vector<Option>{{100, 1, 0, 3}});
  }
  return problem;
}

class Check : public ::testing::Test {
 protected:
  const RoundProblem problem_ = rich_problem();
  Solution solution_ = Planner().solve(problem_);
  bool accepted() const { return static_cast<bool>(check_solution(problem_, solution_)); }
};

TEST_F(Check, AcceptsWhatThePlannerFound) {
  EXPECT_TRUE(accepted());
  EXPECT_FALSE(solution_.certificate.odd_sets.empty());
  EXPECT_EQ(solution_.value, 207);
}

TEST_F(Check, RejectsADroppedOddSet) {
  solution_.certificate.odd_sets.clear();
  EXPECT_FALSE(accepted());
  // Also when the bound is lowered to match.
  const Solution again = Planner().solve(problem_);
  for (const OddSet& set : again.certificate.odd_sets) {
    solution_.certificate.root_bound -= set.price * static_cast<std::int64_t>(set.jobs.size() / 2);
  }
  EXPECT_FALSE(accepted());
}

TEST_F(Check, RejectsALowerPriceOfAJob) {
  solution_.certificate.job_price[0] -= 2 * solution_.certificate.scale;
  solution_.certificate.root_bound -= 2 * solution_.certificate.scale;
  EXPECT_FALSE(accepted());
}

TEST_F(Check, RejectsANegativePrice) {
  solution_.certificate.row_price[0] = -2;
  EXPECT_FALSE(accepted());
}

TEST_F(Check, RejectsASwappedJob) {
  for (Choice& choice : solution_.chosen) {
    if (choice.second == kNoJob) choice.first = (choice.first + 1) % 5;
  }
  EXPECT_FALSE(accepted());
}

TEST_F(Check, RejectsAValueThatIsNotTheSum) {
  ++solution_.value;
  ++solution_.bound;
  EXPECT_FALSE(accepted());
}

TEST_F(Check, RejectsACandidateThatWasNotOffered) {
  solution_.chosen[0].option.utility += 1;
  solution_.value += 1;
  solution_.bound += 1;
  EXPECT_FALSE(accepted());
}

TEST_F(Check, RejectsAJobChosenTwiceAndUnknownJobs) {
  const Solution whole = solution_;
  solution_.chosen.push_back(solution_.chosen[0]);
  EXPECT_FALSE(accepted());
  solution_ = whole;
  solution_.chosen[0].first = 99;
  EXPECT_FALSE(accepted());
  solution_ = whole;
  solution_.chosen[0].first = kNoJob;
  EXPECT_FALSE(accepted());
}

TEST_F(Check, RejectsAnOverdrawnRow) {
  RoundProblem small;
  small.reset(std::vector<Capacity>{{2, {}}});
  for (int j = 0; j < 3; ++j) small.add_job(j + 1, std::vector<Option>{{5, 1, 0, 0}});
  Solution solution = Planner().solve(small);
  for (JobIndex j = 0; j < 3; ++j) {
    bool there = false;
    for (const Choice& choice : solution.chosen) there = there || choice.first == j;
    if (!there) solution.chosen.push_back({j, kNoJob, {5, 1, 0, 0}});
  }
  solution.value = solution.bound = 15;

  EXPECT_FALSE(check_solution(small, solution));
}

TEST_F(Check, RejectsABoundThatThePricesDoNotProve) {
  solution_.bound += 1'000;
  solution_.proof = Proof::kGap;
  EXPECT_FALSE(accepted());
}

TEST_F(Check, RejectsAProofThatDoesNotGoWithTheBound) {
  solution_.proof = Proof::kGap;
  EXPECT_FALSE(accepted());
}

TEST(CheckAtRandom, RejectsEveryMutationThatChangesWhatIsProved) {
  Rng rng(1);
  Planner planner;
  int rejected = 0, tried = 0;

  for (int k = 0; k < rounds(300, 3'000); ++k) {
    const RoundProblem problem =
        make_problem(random_instance(rng, {.min_jobs = 4, .max_jobs = 20, .max_capacity = 12}));
    Solution solution = planner.solve(problem);
    if (solution.value == 0) continue;
    Certificate& certificate = solution.certificate;
    switch (rng.below(4)) {
      case 0:  // claims that a worse plan is the best
        solution.value -= solution.chosen.back().option.utility;
        solution.chosen.pop_back();
        break;
      case 1:  // a certificate that does not add up
        certificate.root_bound -= 1;
        break;
      case 2:  // half of every price
        for (std::int64_t& price : certificate.row_price) price /= 2;
        for (std::int64_t& price : certificate.job_price) price /= 2;
        break;
      default:
        solution.chosen.back().option.gpus += 1;
    }
    rejected += !check_solution(problem, solution);
    ++tried;
  }

  EXPECT_EQ(rejected, tried);
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace ymir
