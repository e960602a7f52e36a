// The planner against general MILP solvers at gap 0, on problems too large for exhaustive search.
#include "ymir/optimize/milp_oracle.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "ymir/optimize/check.h"
#include "ymir/optimize/planner.h"
#include "ymir/optimize/test_instances.h"

namespace ymir {
namespace {

class MilpOracle : public ::testing::TestWithParam<Milp> {
 protected:
  MilpOracle() { std::filesystem::create_directories(folder_); }
  ~MilpOracle() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = std::filesystem::temp_directory_path() /
                        ("ymir-milp-" + std::to_string(::getpid()) + milp_name(GetParam()));
};

TEST_P(MilpOracle, FindsNothingBetterAndTheSameWhereThePlannerHasProved) {
  if (!have_milp(GetParam())) GTEST_SKIP() << milp_name(GetParam()) << " is not installed";
  Rng rng(21);
  Planner planner;
  int compared = 0, unproved = 0, given_up = 0;

  for (int k = 0; k < rounds(8, 1'000); ++k) {
    const RoundProblem problem =
        make_problem(random_instance(rng, {.min_jobs = 10,
                                           .max_jobs = 80,
                                           .max_types = 2,
                                           .max_extra_rows = 2,
                                           .blocks = k % 4 == 0,
                                           .max_capacity = 100,
                                           .density = rng.uniform(0.03, 0.3)}));
    const Solution solution = planner.solve(problem);
    ASSERT_TRUE(check_solution(problem, solution)) << k;
    const MilpAnswer answer = solve_milp(GetParam(), problem, folder_, 60);
    if (!answer.solved) {
      ++given_up;
      ASSERT_LE(answer.value, solution.bound) << k;
      continue;
    }
    ++compared;
    ASSERT_LE(solution.value, answer.value) << k;
    ASSERT_GE(solution.bound, answer.value) << k;
    if (solution.proof == Proof::kOptimal) {
      ASSERT_EQ(solution.value, answer.value) << k;
    } else {
      ++unproved;
    }
  }

  std::printf("%s: %d compared, %d of them not proved by the planner, %d given up by %s\n",
              milp_name(GetParam()), compared, unproved, given_up, milp_name(GetParam()));
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Solvers, MilpOracle,
                         ::testing::Values(Milp::kGlpk, Milp::kCbc, Milp::kHighs),
                         [](const auto& param) { return milp_name(param.param); });

}  // namespace
}  // namespace ymir
