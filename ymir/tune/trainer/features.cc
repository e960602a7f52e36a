#include "ymir/tune/trainer/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ymir {

Result<> check(const Features& f, std::size_t num_labels) {
  if (f.rows < 2 || f.columns < 1 ||
      f.values.size() / static_cast<std::size_t>(f.columns) != static_cast<std::size_t>(f.rows) ||
      f.values.size() % static_cast<std::size_t>(f.columns) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("features are not a matrix of at least 2 rows: {} values, {} x {}",
                             f.values.size(), f.rows, f.columns)};
  }
  if (num_labels != static_cast<std::size_t>(f.rows)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} labels for {} rows of features", num_labels, f.rows)};
  }
  const auto bad = std::find_if(f.values.begin(), f.values.end(),
                                [](float value) { return !std::isfinite(value); });
  if (bad != f.values.end()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("feature is not finite: row {}",
                                                          (bad - f.values.begin()) / f.columns)};
  }
  return Ok{};
}

Result<> check_labels(std::span<const std::int32_t> labels, int num_classes) {
  for (const std::int32_t label : labels) {
    if (label < 0 || label >= num_classes) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("label outside 0 .. {}: {}", num_classes - 1, label)};
    }
  }
  const bool two = std::any_of(labels.begin(), labels.end(),
                               [&](std::int32_t label) { return label != labels.front(); });
  if (!two) return Error{ErrorCode::kInvalidArgument, "fewer than two classes occur"};
  return Ok{};
}

}  // namespace ymir
