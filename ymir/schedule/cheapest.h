// Cheapest: one option for each job, GPUs within a capacity, least sum of costs, exactly, by
// dynamic programme. Among equals the fewest GPUs, then the lexicographically smallest vector of
// GPUs in the order of the jobs. For the textbook policies; pairs need the optimiser. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

struct CheapestOption {
  int gpus = 0;
  std::int64_t cost = 0;
};
// Ascending in GPUs, not empty; the first one takes none.
using CheapestOptions = std::vector<CheapestOption>;

// For each job the index of its option. kExhausted when jobs x capacity is above 2 x 10^8.
Result<std::vector<std::size_t>> cheapest(std::span<const CheapestOptions> jobs, int capacity);

// For each job the least cost of all others, were it not there.
Result<std::vector<std::int64_t>> cheapest_without(std::span<const CheapestOptions> jobs,
                                                   int capacity);

}  // namespace ymir
