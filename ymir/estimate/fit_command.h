// `ymir fit --curve FILE.csv [--target X] [--epsilon E]`: what the command does between reading the
// file and printing the answer. Pure, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ymir/base/result.h"

namespace ymir {

struct FitRequest {
  std::optional<double> target{};  // loss
  double epsilon = 0.001;          // of normalised loss, a unit
  double unit_steps = 0;           // 0: the usual distance between two rows of the file
  Result<> validate() const;
};

struct FitAnswer {
  std::string text{};  // for people, with a final newline
  std::string json{};  // one object, one line
};

// `csv` has a header with columns `step` and `loss` (others are ignored). Rows with an empty or
// non-finite loss are counted and left out. kInvalidArgument with "NAME:LINE:" in front for what is
// no such table, and when the points are too few for a curve.
//
// JSON: points, dropped, family, a, b, c, d, one_step_error, converging, target and
// steps_to_target, epsilon, unit_steps and steps_to_convergence; the two answers are
// {"p10","p50","p90"} or
// {"censored": true, "at_least": k}.
Result<FitAnswer> answer_fit(std::string_view csv, const std::string& name,
                             const FitRequest& request);

}  // namespace ymir
