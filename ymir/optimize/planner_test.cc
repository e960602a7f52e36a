#include "ymir/optimize/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ymir/optimize/check.h"
#include "ymir/optimize/test_instances.h"

namespace ymir {
namespace {

std::string message(const Result<>& result) { return result ? "" : result.error().message; }

void expect_exact(Rng& rng, const InstanceShape& shape, int count) {
  Planner planner;
  for (int k = 0; k < count; ++k) {
    const RoundProblem problem = make_problem(random_instance(rng, shape));
    ASSERT_EQ(message(problem.validate()), "") << k;
    const Solution solution = planner.solve(problem);
    ASSERT_EQ(message(check_solution(problem, solution)), "") << k;
    ASSERT_EQ(solution.value, exhaustive_value(problem)) << k;
    ASSERT_EQ(solution.proof, Proof::kOptimal) << k;
    ASSERT_TRUE(solution.canonical) << k;
  }
}

TEST(Planner, FindsTheOptimumOfEveryTinyProblem) {
  Rng rng(1);
  expect_exact(rng, {}, rounds(20000, 100000));
}

TEST(Planner, FindsTheOptimumWithSeveralTypes) {
  Rng rng(2);
  expect_exact(rng, {.max_jobs = 7, .max_types = 3}, rounds(3000, 30000));
}

TEST(Planner, FindsTheOptimumWithExtraRows) {
  Rng rng(3);
  expect_exact(rng, {.max_jobs = 7, .max_types = 2, .max_extra_rows = 2}, rounds(3000, 30000));
}

TEST(Planner, FindsTheOptimumWithBlockRows) {
  Rng rng(4);
  expect_exact(rng, {.max_jobs = 7, .max_types = 2, .max_extra_rows = 1, .blocks = true},
               rounds(3000, 30000));
}

}  // namespace
}  // namespace ymir
