#include "ymir/schedule/cheapest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <tuple>

namespace ymir {
namespace {

using testing::ElementsAre;
using Answer = std::tuple<std::int64_t, int, std::vector<int>>;  // cost, GPUs in all, of each

// By trying everything.
Answer best_of_all(std::span<const CheapestOptions> jobs, int capacity) {
  Answer best{INT64_MAX, 0, {}};
  std::vector<std::size_t> at(jobs.size(), 0);
  while (true) {
    std::int64_t cost = 0;
    int gpus = 0;
    std::vector<int> each;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      cost += jobs[i][at[i]].cost;
      gpus += jobs[i][at[i]].gpus;
      each.push_back(jobs[i][at[i]].gpus);
    }
    if (gpus <= capacity) best = std::min(best, Answer{cost, gpus, each});
    std::size_t i = 0;
    while (i < jobs.size() && ++at[i] == jobs[i].size()) at[i++] = 0;
    if (i == jobs.size()) return best;
  }
}

std::vector<CheapestOptions> drawn_jobs(std::size_t most) {
  const auto count = *rc::gen::inRange<std::size_t>(1, most);
  std::vector<CheapestOptions> jobs(count);
  for (CheapestOptions& options : jobs) {
    options = {{0, *rc::gen::inRange(0, 6)}};
    int gpus = 0;
    const int sizes = *rc::gen::inRange(0, 3);
    for (int k = 0; k < sizes; ++k) {
      gpus += *rc::gen::inRange(1, 3);
      options.push_back({gpus, *rc::gen::inRange(-2, 6)});
    }
  }
  return jobs;
}

RC_GTEST_PROP(Cheapest, IsTheBestOfAllByCostThenGpusThenOrder, ()) {
  const std::vector<CheapestOptions> jobs = drawn_jobs(6);
  const int capacity = *rc::gen::inRange(0, 9);

  const auto chosen = cheapest(jobs, capacity);

  RC_ASSERT(static_cast<bool>(chosen));
  Answer mine{0, 0, {}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const CheapestOption& option = jobs[i][(*chosen)[i]];
    std::get<0>(mine) += option.cost;
    std::get<1>(mine) += option.gpus;
    std::get<2>(mine).push_back(option.gpus);
  }
  RC_ASSERT(mine == best_of_all(jobs, capacity));
}

RC_GTEST_PROP(Cheapest, KnowsWhatTheOthersWouldCostWithoutEachJob, ()) {
  const std::vector<CheapestOptions> jobs = drawn_jobs(5);
  const int capacity = *rc::gen::inRange(0, 9);

  const auto without = cheapest_without(jobs, capacity);

  RC_ASSERT(static_cast<bool>(without));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<CheapestOptions> others = jobs;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    RC_ASSERT((*without)[i] == std::get<0>(best_of_all(others, capacity)));
  }
}

TEST(Cheapest, TakesTheFewestGpusAmongEquals) {
  const std::vector<CheapestOptions> jobs{{{0, 9}, {1, 5}, {2, 5}}, {{0, 9}, {1, 5}, {2, 5}}};

  EXPECT_THAT(*cheapest(jobs, 4), ElementsAre(1, 1));
  EXPECT_THAT(*cheapest(jobs, 1), ElementsAre(0, 1)) << "the smaller vector of GPUs";
}

TEST(Cheapest, RefusesWhatNoMemoryHolds) {
  const std::vector<CheapestOptions> jobs(100'000, CheapestOptions{{0, 1}});

  const auto chosen = cheapest(jobs, 100'000);

  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace ymir
