#include "ymir/optimize/greedy.h"

#include <gtest/gtest.h>

#include "ymir/optimize/test_instances.h"

namespace ymir {
namespace {

struct Relaxation {  // of a problem, matched at one price of all rows
  RoundProblem problem;
  Prices prices;
  ActiveGraph graph;

  Relaxation(RoundProblem round, std::int64_t price) : problem(std::move(round)) {
    prices.reset(problem);
    prices.set(std::vector<std::int64_t>(prices.num_rows(), 2 * (price * prices.scale() / 2)));
    graph.reset(problem, prices, [] { return false; });
    for (std::size_t p = 0; p < problem.pairs().size(); ++p) {
      graph.activate(static_cast<std::int32_t>(p));
    }
    graph.evaluate();
  }
  std::vector<Pick> plan() const { return greedy_plan(problem, prices, graph); }
  const KeptOption& candidate(const Pick& pick) const {
    return pick.pair < 0 ? problem.alone_candidates()[pick.candidate]
                         : problem.pair_candidates()[pick.candidate];
  }
  std::int64_t value(const std::vector<Pick>& plan) const {
    std::int64_t sum = 0;
    for (const Pick& pick : plan) sum += candidate(pick).utility;
    return sum;
  }
};

RoundProblem jobs_of_one_gpu(int jobs, int gpus) {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{gpus, {}}});
  for (int j = 0; j < jobs; ++j) problem.add_job(j + 1, std::vector<Option>{{10 + j, 1, 0, 0}});
  return problem;
}

TEST(Greedy, KeepsTheBestOfAMatchingThatOverdraws) {
  const Relaxation free(jobs_of_one_gpu(6, 4), 0);

  EXPECT_EQ(free.value(free.plan()), 15 + 14 + 13 + 12);
}

TEST(Greedy, FillsWhatAMatchingLeaves) {
  const Relaxation dear(jobs_of_one_gpu(6, 4), 14);

  EXPECT_EQ(dear.value(dear.plan()), 15 + 14 + 13 + 12);
}

TEST(Greedy, GivesALargerCandidateWhatIsLeft) {
  RoundProblem problem;
  problem.reset(std::vector<Capacity>{{5, {}}});
  problem.add_job(1, std::vector<Option>{{10, 1, 0, 0}, {18, 4, 0, 0}});
  problem.add_job(2, std::vector<Option>{{10, 1, 0, 0}});
  const Relaxation dear(std::move(problem), 8);

  EXPECT_EQ(dear.value(dear.plan()), 28);
}

TEST(Greedy, AddsIdleJobsInPairs) {
  RoundProblem problem = jobs_of_one_gpu(3, 2);
  problem.add_pair(0, 1, std::vector<Option>{{17, 1, 0, 3}});
  const Relaxation dear(std::move(problem), 30);

  EXPECT_EQ(dear.value(dear.plan()), 17 + 12);
}

TEST(Greedy, AlwaysFitsAndNeverBeatsTheBest) {
  Rng rng(31);
  std::int64_t sum = 0, best = 0;

  for (int k = 0; k < 2'000; ++k) {
    RoundProblem problem = make_problem(
        random_instance(rng, {.max_jobs = 7, .max_types = 2, .max_extra_rows = 1, .blocks = true}));
    const std::int64_t price = rng.below(2) == 0 ? 0 : problem.max_utility() / rng.between(1, 40);
    const Relaxation relaxation(std::move(problem), price);
    const std::vector<Pick> plan = relaxation.plan();

    std::vector<std::int64_t> used(relaxation.prices.num_rows(), 0);
    std::vector<int> chosen(relaxation.problem.num_jobs(), 0);
    for (const Pick& pick : plan) {
      const JobIndex other = pick.pair < 0 ? kNoJob : relaxation.problem.pairs()[pick.pair].second;
      relaxation.prices.charge(pick.job, other, relaxation.candidate(pick), 1, used);
      ASSERT_EQ(++chosen[pick.job], 1) << k;
      if (other != kNoJob) {
        ASSERT_EQ(++chosen[other], 1) << k;
      }
    }
    for (int r = 0; r < relaxation.prices.num_rows(); ++r) {
      ASSERT_LE(used[r], relaxation.prices.rows()[r].capacity) << k;
    }
    const std::int64_t optimum = exhaustive_value(relaxation.problem);
    ASSERT_LE(relaxation.value(plan), optimum) << k;
    sum += relaxation.value(plan);
    best += optimum;
  }

  EXPECT_GT(sum, best * 8 / 10);
}

}  // namespace
}  // namespace ymir
