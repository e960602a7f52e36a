#include "ymir/optimize/master.h"

#include <algorithm>

namespace ymir {
namespace {

constexpr int kMaxPivots = 300;  // per solve; a proposal need not be the optimum

Real unit_over(int bits) { return Real(1) / Real(std::int64_t{1} << bits); }

}  // namespace

// Columns 2r and 2r + 1 bound the price of row r from above and below; cuts follow.
Master::Master(std::span<const std::int64_t> highest_price)
    : rows_(static_cast<int>(highest_price.size()) + 1) {
  for (int r = 0; r + 1 < rows_; ++r) {
    for (const int sign : {1, -1}) {
      Column column{std::vector<Real>(rows_), sign == 1 ? Real(-highest_price[r]) : Real()};
      column.entry[r] = Real(sign);
      columns_.push_back(std::move(column));
    }
  }
}

void Master::add_cut(std::int64_t value, std::span<const std::int64_t> left) {
  Column cut{std::vector<Real>(rows_), Real(value)};
  for (int r = 0; r + 1 < rows_; ++r) cut.entry[r] = Real(left[r]);
  cut.entry[rows_ - 1] = Real(1);
  columns_.push_back(std::move(cut));
  if (!basis_.empty()) return;
  // The first cut with one bound per row is a feasible basis: B is triangular, so is its inverse.
  inverse_.assign(rows_, std::vector<Real>(rows_));
  level_.assign(rows_, Real(1));
  for (int r = 0; r + 1 < rows_; ++r) {
    const bool over = left[r] < 0;
    basis_.push_back(2 * r + (over ? 0 : 1));
    inverse_[r][r] = Real(over ? 1 : -1);
    inverse_[r][rows_ - 1] = Real(over ? -left[r] : left[r]);
    level_[r] = inverse_[r][rows_ - 1];
  }
  basis_.push_back(static_cast<int>(columns_.size()) - 1);
  inverse_[rows_ - 1][rows_ - 1] = Real(1);
}

std::vector<Real> Master::multipliers() const {
  std::vector<Real> y(rows_);
  for (int k = 0; k < rows_; ++k) {
    const Real cost = columns_[basis_[k]].cost;
    if (cost.is_zero()) continue;
    for (int r = 0; r < rows_; ++r) y[r] = y[r] + cost * inverse_[k][r];
  }
  return y;
}

bool Master::pivot() {
  const std::vector<Real> y = multipliers();
  const Real bound = y[rows_ - 1];
  Real best = (bound.is_negative() ? -bound : bound) * unit_over(44);
  int entering = -1;
  for (int c = 0; c < static_cast<int>(columns_.size()); ++c) {
    Real gain = columns_[c].cost;
    for (int r = 0; r < rows_; ++r) {
      if (!columns_[c].entry[r].is_zero()) gain = gain - y[r] * columns_[c].entry[r];
    }
    if (best < gain) {
      best = gain;
      entering = c;
    }
  }
  if (entering < 0) return false;

  std::vector<Real> change(rows_);
  Real largest;
  for (int k = 0; k < rows_; ++k) {
    for (int r = 0; r < rows_; ++r) {
      change[k] = change[k] + inverse_[k][r] * columns_[entering].entry[r];
    }
    largest = largest < change[k] ? change[k] : largest;
  }
  const Real least = largest * unit_over(40);
  int leaving = -1;
  Real ratio;
  for (int k = 0; k < rows_; ++k) {
    if (!(least < change[k])) continue;
    const Real r = level_[k] / change[k];
    if (leaving < 0 || r < ratio) {
      leaving = k;
      ratio = r;
    }
  }
  if (leaving < 0) return false;
  for (int r = 0; r < rows_; ++r) inverse_[leaving][r] = inverse_[leaving][r] / change[leaving];
  for (int k = 0; k < rows_; ++k) {
    if (k == leaving || change[k].is_zero()) continue;
    level_[k] = level_[k] - ratio * change[k];
    if (level_[k].is_negative()) level_[k] = Real();  // rounding
    for (int r = 0; r < rows_; ++r) {
      inverse_[k][r] = inverse_[k][r] - change[k] * inverse_[leaving][r];
    }
  }
  level_[leaving] = ratio;
  basis_[leaving] = entering;
  return true;
}

std::vector<std::int64_t> Master::solve(std::int64_t& bound) {
  if (basis_.empty()) return {};
  for (int k = 0; k < kMaxPivots && pivot(); ++k) {
  }
  const std::vector<Real> y = multipliers();
  bound = y[rows_ - 1].to_integer();
  std::vector<std::int64_t> price(rows_ - 1);
  for (int r = 0; r + 1 < rows_; ++r) price[r] = std::max<std::int64_t>(0, (-y[r]).to_integer());
  return price;
}

}  // namespace ymir
