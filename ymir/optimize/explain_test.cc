#include "ymir/optimize/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/optimize/check.h"
#include "ymir/optimize/test_instances.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;

std::vector<Choice> all_choices(const RoundProblem& problem) {
  std::vector<Choice> all;
  for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
    for (const KeptOption& c : problem.alone(j)) all.push_back({j, kNoJob, problem.option(c)});
  }
  for (const PairEdge& pair : problem.pairs()) {
    for (const KeptOption& c : problem.together(pair)) {
      all.push_back({pair.first, pair.second, problem.option(c)});
    }
  }
  return all;
}

TEST(Explain, RegretNeverExceedsWhatForcingTheChoiceReallyLoses) {
  Rng rng(1);
  const InstanceShape shape{.max_jobs = 14, .max_types = 2, .max_extra_rows = 1, .blocks = true};
  int tight = 0, all = 0;

  for (int k = 0; k < rounds(60, 600); ++k) {
    const RoundProblem problem = make_problem(random_instance(rng, shape));
    const Solution solution = Planner().solve(problem);
    for (const Choice& choice : all_choices(problem)) {
      const Result<Solution> forced = solve_forcing(problem, choice);
      ASSERT_TRUE(forced) << forced.error().message;
      ASSERT_EQ(forced->proof, Proof::kOptimal);
      const std::int64_t loss = solution.value - forced->value;
      const std::int64_t bound = regret(problem, solution, choice);
      ASSERT_GE(bound, 0);
      ASSERT_LE(bound, loss) << k;
      tight += bound == loss;
      ++all;
    }
  }

  EXPECT_GT(tight * 4, all);  // a bound of 0 everywhere would hold too
}

TEST(Explain, ForcingWhatWasChosenLosesNothing) {
  Rng rng(2);
  const RoundProblem problem =
      make_problem(random_instance(rng, {.min_jobs = 12, .max_jobs = 12, .max_capacity = 20}));
  const Solution solution = Planner().solve(problem);
  ASSERT_FALSE(solution.chosen.empty());

  for (const Choice& choice : solution.chosen) {
    const Result<Solution> forced = solve_forcing(problem, choice);
    ASSERT_TRUE(forced);
    EXPECT_EQ(forced->value, solution.value);
    EXPECT_EQ(regret(problem, solution, choice), 0);
  }
}

TEST(Explain, RefusesToForceWhatDoesNotFit) {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{4, {}}});
  problem.add_job(1, std::vector<Option>{{10, 2, 0, 0}});

  const Result<Solution> forced = solve_forcing(problem, {0, kNoJob, {99, 8, 0, 0}});

  EXPECT_FALSE(forced);
}

TEST(Explain, SaysWhatACandidateCostsAndWhatAGpuIsWorth) {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{4, {}}});
  problem.add_job(7, std::vector<Option>{{100, 1, 0, 0}, {110, 4, 0, 0}});
  problem.add_job(8, std::vector<Option>{{90, 1, 0, 0}, {180, 3, 0, 0}});
  const Solution solution = Planner().solve(problem);

  const std::string sentence = explain(problem, solution, {0, kNoJob, {110, 4, 0, 0}}, "j7");

  EXPECT_EQ(solution.value, 280);
  EXPECT_THAT(sentence, HasSubstr("4 GPUs for j7 would cost the others"));
  EXPECT_THAT(sentence, HasSubstr("% more than it gains"));
  EXPECT_THAT(sentence, HasSubstr("GPU price now"));
  EXPECT_THAT(explain(problem, solution, solution.chosen[0], "j7"), HasSubstr("chosen"));
}

}  // namespace
}  // namespace ymir
