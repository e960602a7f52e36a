// ScatteredTable: linear interpolation between scattered measurements in three dimensions: the
// value at a query is the mean of four measured points around it, weighted so that their mean
// position is the query (barycentric), and those four form a cell of the Delaunay triangulation.
//
// No triangulation is built. The cell around one query is the basis of a small linear programme
// (least weighted squared length; the Delaunay cells are the lower hull of the lifted points),
// which a simplex method of four rows finds. On a regular grid several triangulations exist:
// `unique` says whether their values are the same (to 1e-9); where not, the answer is half-way
// between the lowest and the highest. Pure after add(), any thread.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>

namespace ymir {

class ScatteredTable {
 public:
  using Point = std::array<double, 3>;
  using Value = std::array<double, 2>;
  struct Answer {
    Value value{};
    bool unique = true;
  };

  void add(const Point& point, const Value& value);  // a point given twice: the first holds
  std::size_t size() const { return values_.size(); }
  // Empty when the query lies outside the measured points' hull.
  std::optional<Answer> at(const Point& query) const;

 private:
  std::map<Point, Value> values_;
};

}  // namespace ymir
