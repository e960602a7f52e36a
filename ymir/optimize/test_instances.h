// Random round problems and their optimum by exhaustive search, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "ymir/base/rng.h"
#include "ymir/optimize/problem.h"

namespace ymir {

// A problem as a list of calls, so that a test can make it again with the jobs in another order.
struct Instance {
  struct Job {
    std::uint64_t key = 0;
    std::vector<Option> alone;
    std::vector<RowShare> shares;
  };
  struct Pair {
    std::size_t first = 0, second = 0;
    std::vector<Option> together;
  };
  std::vector<Capacity> types;
  std::vector<int> extra_rows;
  std::vector<Job> jobs;
  std::vector<Pair> pairs;
};

struct InstanceShape {
  int min_jobs = 0, max_jobs = 8;
  int max_types = 1, max_extra_rows = 0;
  bool blocks = false;
  std::int64_t max_capacity = 40;
  int max_options = 5;
  double density = -1;  // of pairs; < 0: anything
};

Instance random_instance(Rng& rng, const InstanceShape& shape);
// Makes the problem; job k of the result is instance.jobs[order[k]]. Options are added in the
// reverse order when `reverse` says so. Empty order: as they stand.
RoundProblem make_problem(const Instance& instance, const std::vector<std::size_t>& order = {},
                          bool reverse = false);
// The best value, by trying every plan.
std::int64_t exhaustive_value(const RoundProblem& problem);
// Counts of the long runs are taken when YMIR_NIGHTLY is set.
int rounds(int usual, int nightly);

}  // namespace ymir
