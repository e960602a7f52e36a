#include "ymir/sim/artifact/pollux/genetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ymir/base/rng.h"

namespace ymir::artifact::pollux {
namespace {

using testing::ElementsAre;
using Worth = GeneticProblem::Worth;

// Every job gains from each GPU, and loses a part when it spans nodes.
GeneticProblem greedy_problem(int jobs, int nodes) {
  GeneticProblem problem{.jobs = jobs, .nodes = nodes, .gpus_per_node = 4};
  problem.current.assign(static_cast<std::size_t>(jobs * nodes), 0);
  problem.caps.assign(static_cast<std::size_t>(jobs), 8);
  problem.worth = [jobs, nodes](const Allocation& a) {
    Worth worth;
    for (int j = 0; j < jobs; ++j) {
      const auto row = a.begin() + j * nodes;
      const double gpus = std::accumulate(row, row + nodes, 0.0);
      const auto on = nodes - std::count(row, row + nodes, 0);
      worth.fitness -= 1 / (gpus * (on > 1 ? 0.8 : 1) + 0.01);
      worth.utility += gpus;
    }
    return worth;
  };
  return problem;
}

TEST(FrontRanks, PutsEachPointBehindThoseThatDominateIt) {
  Rng rng(3);
  std::vector<Worth> worths(200);
  for (Worth& w : worths)
    w = {static_cast<double>(rng.below(20)), static_cast<double>(rng.below(20))};

  const std::vector<int> ranks = front_ranks(worths);

  const auto dominates = [](const Worth& a, const Worth& b) {
    return a.fitness >= b.fitness && a.utility >= b.utility &&
           (a.fitness > b.fitness || a.utility > b.utility);
  };
  for (std::size_t i = 0; i < worths.size(); ++i) {
    int longest = 0;  // one more than the worst rank of those that dominate it
    for (std::size_t k = 0; k < worths.size(); ++k)
      if (dominates(worths[k], worths[i])) longest = std::max(longest, ranks[k] + 1);
    EXPECT_EQ(ranks[i], longest);
  }
}

TEST(Repair, TakesInTheOrderOfItsRules) {
  GeneticProblem problem{.jobs = 3, .nodes = 3, .gpus_per_node = 4};
  problem.caps = {6, 4, 4};
  problem.max_nodes = 16;
  Allocation allocation = {4, 4, 0,   // spans 0 and 1; one GPU above its cap, twice
                           0, 2, 3,   // spans too: loses node 1 to the first, keeps node 2
                           2, 0, 0};  // node 0 is full by then

  repair(problem, {0, 1, 2}, allocation);

  EXPECT_THAT(allocation, ElementsAre(4, 2, 0, 0, 0, 3, 0, 0, 0));
}

TEST(GeneticSearch, FillsTheClusterFairlyAndWithinItsRules) {
  const GeneticProblem problem = greedy_problem(6, 4);

  const GeneticResult result = search(problem, {problem.current}, {.seed = 5});

  EXPECT_LE(result.population.size(), 100U);
  for (const Allocation& allocation : result.population) {
    Allocation again = allocation;
    repair(problem, {0, 1, 2, 3}, again);
    EXPECT_EQ(again, allocation);
  }
  EXPECT_EQ(std::accumulate(result.best.begin(), result.best.end(), 0), 16);
  for (int j = 0; j < 6; ++j)
    EXPECT_GE(std::accumulate(result.best.begin() + j * 4, result.best.begin() + j * 4 + 4, 0), 2);
}

TEST(GeneticSearch, IsAFunctionOfSeedAndRound) {
  const GeneticProblem problem = greedy_problem(6, 4);
  const auto run = [&](std::uint64_t seed, std::uint32_t round) {
    return search(problem, {problem.current}, {.generations = 5, .seed = seed, .round = round})
        .population;
  };

  EXPECT_EQ(run(5, 2), run(5, 2));
  EXPECT_NE(run(5, 2), run(6, 2));
  EXPECT_NE(run(5, 2), run(5, 3));
}

}  // namespace
}  // namespace ymir::artifact::pollux
