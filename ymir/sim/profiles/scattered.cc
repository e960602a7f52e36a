#include "ymir/sim/profiles/scattered.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {
namespace {

using Four = std::array<double, 4>;
constexpr double kZero = 1e-9;        // of weights, which lie in [0, 1], and of pivots
constexpr double kImproving = 1e-11;  // of a reduced cost, in units of the terms it is made of
constexpr int kGreedy = 200;
constexpr double kOnSphere = 1e-10;  // the same, when it counts as 0

// x of M x = b, M given by columns; partial pivoting. Empty when M is singular.
std::optional<Four> solve_columns(const std::array<Four, 4>& columns, Four b) {
  std::array<Four, 4> m{};
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < 4; ++c) m[r][c] = columns[c][r];
  for (std::size_t c = 0; c < 4; ++c) {
    std::size_t best = c;
    for (std::size_t r = c + 1; r < 4; ++r)
      if (std::abs(m[r][c]) > std::abs(m[best][c])) best = r;
    if (m[best][c] == 0) return std::nullopt;
    std::swap(m[c], m[best]);
    std::swap(b[c], b[best]);
    for (std::size_t r = c + 1; r < 4; ++r) {
      const double factor = m[r][c] / m[c][c];
      for (std::size_t k = c; k < 4; ++k) m[r][k] -= factor * m[c][k];
      b[r] -= factor * b[c];
    }
  }
  for (std::size_t c = 4; c-- > 0;) {
    for (std::size_t k = c + 1; k < 4; ++k) b[c] -= m[c][k] * b[k];
    b[c] /= m[c][c];
  }
  return b;
}

std::array<Four, 4> transposed(const std::array<Four, 4>& columns) {
  std::array<Four, 4> out{};
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < 4; ++c) out[r][c] = columns[c][r];
  return out;
}

// Least sum of cost * weight over weights >= 0 with sum of column * weight = (1, 0, 0, 0), by the
// revised simplex: the largest gain enters, and after kGreedy pivots the first (Bland's rule, which
// cannot cycle). Columns 0..3 are artificial (the unit vectors): they are
// driven out first and may stay at weight 0.
class Programme {
 public:
  explicit Programme(const std::vector<Four>& columns) : columns_(columns) {}

  bool make_feasible() {
    std::vector<double> cost(columns_.size(), 0);
    std::fill_n(cost.begin(), 4, 1.0);
    if (!minimise(cost)) return false;
    double artificial = 0;
    for (std::size_t r = 0; r < 4; ++r)
      if (basis_[r] < 4) artificial += weight_[r];
    return artificial <= kZero;
  }

  // From the present basis.
  bool minimise(const std::vector<double>& cost) {
    for (int pivots = 0; pivots < 20'000; ++pivots) {
      if (!update(cost)) return false;
      const std::size_t entering = improving(cost, pivots < kGreedy);
      if (entering == columns_.size()) return true;
      if (!pivot(entering)) return false;
    }
    return false;
  }

  // In units of its terms: in [-1, 1].
  double reduced_cost(const std::vector<double>& cost, std::size_t column) const {
    double value = cost[column], terms = std::abs(cost[column]);
    for (std::size_t r = 0; r < 4; ++r) {
      value -= dual_[r] * columns_[column][r];
      terms += std::abs(dual_[r] * columns_[column][r]);
    }
    return terms > 0 ? value / terms : 0;
  }
  const std::array<std::size_t, 4>& basis() const { return basis_; }
  const Four& weight() const { return weight_; }

 private:
  bool update(const std::vector<double>& cost) {
    std::array<Four, 4> matrix{};
    Four basic_cost{};
    for (std::size_t r = 0; r < 4; ++r) {
      matrix[r] = columns_[basis_[r]];
      basic_cost[r] = cost[basis_[r]];
    }
    const auto weight = solve_columns(matrix, {1, 0, 0, 0});
    const auto dual = solve_columns(transposed(matrix), basic_cost);
    if (!weight || !dual) return false;
    matrix_ = matrix;
    weight_ = *weight;
    dual_ = *dual;
    return true;
  }

  std::size_t improving(const std::vector<double>& cost, bool largest) const {
    std::size_t best = columns_.size();
    double least = -kImproving;
    for (std::size_t c = 4; c < columns_.size(); ++c) {
      const double reduced = reduced_cost(cost, c);
      if (reduced >= least || std::find(basis_.begin(), basis_.end(), c) != basis_.end()) continue;
      if (!largest) return c;
      least = reduced;
      best = c;
    }
    return best;
  }

  bool pivot(std::size_t entering) {
    const auto change = solve_columns(matrix_, columns_[entering]);
    if (!change) return false;
    std::size_t leaving = 4;
    double best = 0;
    for (std::size_t r = 0; r < 4; ++r) {
      // An artificial column at 0 leaves whatever the sign: it must never come back to life.
      const bool stuck = basis_[r] < 4 && weight_[r] <= kZero && std::abs((*change)[r]) > kZero;
      if (!stuck && (*change)[r] <= kZero) continue;
      const double ratio = stuck ? 0 : std::max(weight_[r], 0.0) / (*change)[r];
      const bool first = leaving == 4 || ratio < best - kZero * kZero;
      if (first || (ratio <= best && basis_[r] < basis_[leaving])) {
        best = ratio;
        leaving = r;
      }
    }
    if (leaving == 4) return false;  // unbounded: cannot be, the weights sum to 1
    basis_[leaving] = entering;
    return true;
  }

  const std::vector<Four>& columns_;
  std::array<std::size_t, 4> basis_{0, 1, 2, 3};
  std::array<Four, 4> matrix_{};
  Four weight_{}, dual_{};
};

// The points around a query as columns, behind the four artificial ones, each axis scaled to [-1,
// 1] (weights do not change by it), and their squared distances, which are not scaled.
struct Around {
  std::vector<Four> columns{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  std::vector<double> lift = std::vector<double>(4, 0);
  std::vector<ScatteredTable::Value> values = std::vector<ScatteredTable::Value>(4);

  Around(const std::map<ScatteredTable::Point, ScatteredTable::Value>& points,
         const ScatteredTable::Point& query) {
    ScatteredTable::Point extent{};
    for (const auto& [p, value] : points)
      for (std::size_t k = 0; k < 3; ++k)
        extent[k] = std::max(extent[k], std::abs(p[k] - query[k]));
    for (const auto& [p, measured] : points) {
      values.push_back(measured);
      Four column = {1, 0, 0, 0};
      double squared = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        const double away = p[k] - query[k];
        squared += away * away;
        column[k + 1] = extent[k] > 0 ? away / extent[k] : 0;
      }
      columns.push_back(column);
      lift.push_back(squared);
    }
  }
};

}  // namespace

void ScatteredTable::add(const Point& point, const Value& value) {
  values_.try_emplace(point, value);
}

std::optional<ScatteredTable::Answer> ScatteredTable::at(const Point& query) const {
  const Around around(values_, query);
  Programme cell(around.columns);
  if (!cell.make_feasible() || !cell.minimise(around.lift)) return std::nullopt;
  // Points on the cell's sphere belong to a cell of some triangulation as well.
  std::vector<Four> on_sphere(around.columns.begin(), around.columns.begin() + 4);
  std::vector<Value> value(4);
  for (std::size_t c = 4; c < around.columns.size(); ++c) {
    if (cell.reduced_cost(around.lift, c) > kOnSphere) continue;
    on_sphere.push_back(around.columns[c]);
    value.push_back(around.values[c]);
  }
  Answer answer;
  for (std::size_t k = 0; k < 2; ++k) {
    std::array<double, 2> extreme{};  // lowest, highest
    for (const double sign : {1.0, -1.0}) {
      std::vector<double> cost(on_sphere.size(), 0);
      for (std::size_t c = 4; c < cost.size(); ++c) cost[c] = sign * value[c][k];
      Programme face(on_sphere);
      if (!face.make_feasible() || !face.minimise(cost)) return std::nullopt;
      double& mean = extreme[sign > 0 ? 0 : 1];
      for (std::size_t r = 0; r < 4; ++r) mean += face.weight()[r] * value[face.basis()[r]][k];
    }
    // Between the lowest and the highest value that a triangulation can give.
    answer.value[k] = extreme[0] + (extreme[1] - extreme[0]) / 2;
    const double spread = extreme[1] - extreme[0];
    answer.unique = answer.unique && spread <= 1e-9 * std::max(1.0, std::abs(extreme[1]));
  }
  return answer;
}

}  // namespace ymir
