// Memory: what a solve leaves for the next one, by the keys of the jobs: row prices, job duals and
// the active pairs. Only a hint: it changes how fast a round is solved, never the answer.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ymir/optimize/active_graph.h"
#include "ymir/optimize/prices.h"
#include "ymir/optimize/problem.h"

namespace ymir {

class Memory {
 public:
  void forget() { scale_ = 0; }
  // Does it speak of rows like those of this problem?
  bool fits(const RoundProblem& problem) const;
  // Dissolves the odd sets of the graph's matching.
  void remember(const RoundProblem& problem, const Prices& prices, ActiveGraph& graph);
  // Sets the prices, activates the pairs that are still on offer, and hints the duals.
  void recall(const RoundProblem& problem, Prices& prices, ActiveGraph& graph);

 private:
  std::int64_t scale_ = 0;  // 0: nothing is remembered
  int num_types_ = 0;
  std::vector<std::int64_t> row_price_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> dual_;     // by key, ascending
  std::vector<std::pair<std::uint64_t, std::uint64_t>> active_;  // keys of both jobs
  std::vector<std::pair<std::uint64_t, JobIndex>> jobs_;         // scratch of recall()
  std::vector<std::uint64_t> wanted_;                            // a hash set of job pairs
};

}  // namespace ymir
