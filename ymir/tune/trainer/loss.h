// Losses on logits, with gradients. Sums over rows are f64; the gradient is that of the sum divided
// by `divisor`, the task's number of valid rows of the whole step, known before (once,
// never a mean of means). Pure, few rows: scalar code.
#pragma once

#include <cstdint>
#include <span>

#include "ymir/core/job.h"

namespace ymir {

struct Targets {
  TaskKind kind = TaskKind::kClassify;
  int outputs = 0;
  std::span<const std::int32_t> classes{};  // classify
  std::span<const float> values{};          // regress, multi-label (0 or 1): `outputs` a row
};

// Cross entropy, binary cross entropy or squared error (both the mean over a row's outputs).
// `gradient` (rows x outputs) may be empty. Returns the sum.
double loss_of(const Targets& targets, std::span<const float> logits, double divisor,
               std::span<float> gradient);

}  // namespace ymir
