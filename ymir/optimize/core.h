// Core: finds the best plan among all plans of small loss, by dynamic programming.
//
// Under dual feasible prices every plan is worth exactly the bound minus its loss, a sum of terms
// none of which is negative: the reduced costs of its candidates, the prices of idle jobs, the
// prices of odd sets it does not fill, the price of capacity it leaves. So the candidates whose own
// loss is above `delta` are in no plan with loss <= delta. What remains falls into many small
// components of jobs; each is enumerated along a frontier (state: which jobs of the frontier are
// taken, what is used of each row -> least loss), and the components are merged row by row.
// Among plans of equal loss the one with the least sum of identity hashes is kept.
//
// One thread; memory is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ymir/optimize/active_graph.h"
#include "ymir/optimize/prices.h"
#include "ymir/optimize/problem.h"

namespace ymir {

enum class CoreEnd {
  kComplete,  // every plan with loss <= delta was enumerated
  kTooLarge,  // more than max_states states, or a frontier of more than 128 jobs
  kStopped,   // from outside
};

struct CoreResult {
  CoreEnd end = CoreEnd::kComplete;
  bool found = false;  // a plan was found; it is the best of all if loss <= delta
  std::int64_t loss = 0, tie = 0;
  std::vector<Pick> plan;
  std::int64_t states = 0, columns = 0;
};

class Core {
 public:
  Core();
  ~Core();
  // The graph must be evaluated at `prices`. `pairs` (no pair twice) must hold all pairs with a
  // candidate of reduced cost <= delta for kComplete to speak about all plans; the active pairs
  // inside odd sets must always be among them.
  CoreResult run(const RoundProblem& problem, const Prices& prices, const ActiveGraph& graph,
                 std::span<const std::int32_t> pairs, std::int64_t delta, std::int64_t max_states,
                 const std::function<bool()>& stopped);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The hash that breaks ties between plans of equal scaled value: small enough to be added up.
std::int64_t tie_hash(const RoundProblem& problem, const Pick& pick);

}  // namespace ymir
