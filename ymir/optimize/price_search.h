// PriceSearch: row prices that minimise the bound of the relaxation over the active pairs.
//
// The bound is convex and piecewise linear in the prices, with slope capacity - used. One row:
// bracket the price between a choice that uses more than there is and one that uses no more, then
// cross their supporting lines. Several rows: cutting planes, each a choice seen so far, with steps
// kept near the best point. A choice that fits and leaves nothing of a priced row ends the search
// at once: it is optimal for the active pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "ymir/optimize/active_graph.h"
#include "ymir/optimize/prices.h"

namespace ymir {

class PriceSearch {
 public:
  // Both must outlive the search. `matchings_left` is counted down; at 0 the best so far is kept.
  PriceSearch(Prices& prices, ActiveGraph& graph, int& matchings_left)
      : prices_(prices), graph_(graph), matchings_left_(matchings_left) {}

  // Sets the prices of the relaxation without pairs: a common price of all GPUs, extra rows at 0.
  // Returns a sensible first step for run().
  std::int64_t start(const RoundProblem& problem);
  // Starts at the present prices; ends at the best ones found, evaluated. Stops when the bound is
  // known to be within bound / precision of the least. False: stopped from outside.
  bool run(std::int64_t step, std::int64_t precision);
  // Pairs matched at the ends of the search: what a good plan is likely made of. Sorted.
  std::vector<std::int32_t> end_pairs() const;

 private:
  // A choice seen at some prices: a line (plane) value + price * (capacity - used) below the bound.
  struct End {
    bool known = false;
    std::int64_t price = 0, value = 0, used = 0;
    std::vector<std::int32_t> pairs;
  };
  struct Cut {
    std::int64_t value = 0;
    std::vector<std::int64_t> left;  // capacity - used, by row
  };

  bool one_row(std::int64_t step, std::int64_t precision);
  bool bracket(std::int64_t step);
  bool narrow(std::int64_t precision);
  bool evaluate_at(std::int64_t price);
  bool several_rows(std::int64_t precision);
  bool evaluate();
  bool closed() const;
  bool spent() const { return matchings_left_ <= 0; }

  Prices& prices_;
  ActiveGraph& graph_;
  int& matchings_left_;
  std::int64_t best_bound_ = 0;
  std::vector<std::int64_t> best_price_;
  End over_, under_;  // one row: uses more than the capacity; fits
  std::vector<Cut> cuts_;
  std::vector<std::vector<std::int32_t>> recent_;  // several rows: matchings near the best prices
};

}  // namespace ymir
