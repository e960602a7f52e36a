// The multiple-choice knapsack of Titan's objective: one choice a job, the least sum of costs, at
// most `budget` GPUs. Exact, by dynamic programming. Pure; any thread.
#pragma once

#include <vector>

namespace ymir::artifact::titan {

struct Choice {
  int gpus = 0;
  double cost = 0;
};

enum class Ties { kFewest, kMost };  // GPUs in all, among plans of equal cost

// GPUs of each job; after cost and total, the lexicographically smallest. Costs that differ by
// less than 1e-9 are equal: that is the noise of sums in another order. `choices` of each job
// ascending in GPUs, beginning with 0 GPUs.
std::vector<int> cheapest(const std::vector<std::vector<Choice>>& choices, int budget, Ties ties);

}  // namespace ymir::artifact::titan
