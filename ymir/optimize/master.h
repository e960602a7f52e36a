// The master problem of the cutting planes: a small linear programme in Real numbers.
//
//   min over prices 0 <= p <= highest of  max over cuts of  value + sum_r p_r * left_r
//
// solved as its dual (a convex combination of cuts) by the primal simplex method with a basis of
// rows + 1 columns, which stays small however many cuts there are. Cuts may be added between
// solves; the basis is kept. What it returns is a proposal: nothing that is proved rests on it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ymir/optimize/real.h"

namespace ymir {

class Master {
 public:
  explicit Master(std::span<const std::int64_t> highest_price);
  // left: capacity - used by row.
  void add_cut(std::int64_t value, std::span<const std::int64_t> left);
  // The minimising prices; `bound` gets the minimum, a lower bound on the relaxation's. Empty when
  // there is no cut.
  std::vector<std::int64_t> solve(std::int64_t& bound);

 private:
  struct Column {
    std::vector<Real> entry;  // by row of the dual: price rows, then the combination row
    Real cost;
  };
  bool pivot();
  std::vector<Real> multipliers() const;

  int rows_ = 0;  // price rows + 1
  std::vector<Column> columns_;
  std::vector<int> basis_;
  std::vector<std::vector<Real>> inverse_;
  std::vector<Real> level_;  // of the basic columns
};

}  // namespace ymir
