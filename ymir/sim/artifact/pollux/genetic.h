// The genetic search of Pollux: NSGA-II (Deb et al. 2002) over allocations, a matrix of GPUs by job
// and node, with the study's own crossover, mutation and repair.
//
// A function of its inputs: chance comes from a counter keyed by (seed, round), so the same round
// searched twice gives the same. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ymir/base/philox.h"

namespace ymir::artifact::pollux {

// GPUs by [job][node], row by row.
using Allocation = std::vector<std::uint8_t>;

struct GeneticProblem {
  int jobs = 0, nodes = 0;
  std::uint8_t gpus_per_node = 0;
  Allocation current{};
  std::vector<int> caps{};  // most GPUs of each job
  int max_nodes = 16;       // of one job
  // Both are to be large. `of` reads one allocation.
  struct Worth {
    double fitness = 0, utility = 0;
  };
  std::function<Worth(const Allocation&)> worth{};
};

struct GeneticOptions {
  int population = 100, generations = 100;
  double crossover = 0.9;  // probability
  std::uint64_t seed = 0;
  std::uint32_t round = 0;
};

struct GeneticResult {
  std::vector<Allocation> population{};  // the next search may start from it
  Allocation best{};                     // of the first front, the one with the best fitness
};

// `start` is not empty.
GeneticResult search(const GeneticProblem& problem, std::vector<Allocation> start,
                     const GeneticOptions& options);

// Fronts of points that no other of the same or a later front dominates: the rank of each, from 0.
std::vector<int> front_ranks(const std::vector<GeneticProblem::Worth>& worths);

// Makes an allocation possible, in this order: at most one job over several nodes on a node (the
// first keeps it), caps (`order`: of nodes, the last lose), nodes of a job, GPUs of a node (the
// first jobs keep theirs).
void repair(const GeneticProblem& problem, const std::vector<int>& order, Allocation& allocation);

}  // namespace ymir::artifact::pollux
