// Exact evaluation: every row once, in order, no padding rows, sums in f64. The micro-batches are a
// function of the rows' lengths alone.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/trainer/metrics.h"
#include "ymir/tune/trainer/task_torch.h"

namespace ymir {

struct EvaluationRows {
  BatchMaker batch{};
  std::vector<std::int64_t> lengths{};  // tokens of each row
};

// Calls `use` with consecutive batches of at most `max_tokens` tokens (one row at least).
// `go_on` is asked before each; false ends it with kUnavailable.
Result<> for_each_batch(const EvaluationRows& rows, std::int64_t max_tokens,
                        const std::function<bool()>& go_on,
                        const std::function<void(const Batch&)>& use);

Result<Outcomes> evaluate_rows(const TaskSetup& setup, const at::Tensor& adapter,
                               const at::Tensor& head, const Encoder& encoder,
                               const EvaluationRows& rows, const std::function<bool()>& go_on);

}  // namespace ymir
