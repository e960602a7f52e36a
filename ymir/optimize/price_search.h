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
  void start(const RoundProblem& problem);
  // Starts at the present prices; ends evaluated at prices whose bound is, but for coarse
  // tolerances, known to be within `tolerance` of the least. False: stopped from outside.
  bool run(std::int64_t tolerance);
  // How far the best bound of the last run may be above the least.
  std::int64_t distance() const { return distance_; }
  // Pairs matched at the ends of the search: what a good plan is likely made of. Sorted.
  std::vector<std::int32_t> end_pairs() const;

 private:
  static constexpr auto kNone = static_cast<std::size_t>(-1);
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

  bool one_row(std::int64_t tolerance);
  std::int64_t step();
  bool evaluate_at(std::int64_t price);
  bool several_rows(std::int64_t tolerance);
  bool evaluate();
  bool closed();
  bool near(std::int64_t tolerance);
  bool spent() const { return matchings_left_ <= 0; }

  Prices& prices_;
  ActiveGraph& graph_;
  int& matchings_left_;
  std::int64_t best_bound_ = 0, distance_ = 0;
  std::vector<std::int64_t> best_price_;
  std::size_t edges_ = kNone;  // of the graph when the ends were found
  int steps_ = 0;              // taken beyond the end known
  End over_, under_;           // one row: uses more than the capacity; fits
  std::vector<Cut> cuts_;
  std::vector<std::vector<std::int32_t>> recent_;  // several rows: matchings near the best prices
};

}  // namespace ymir
