// Pooled features of rows, as plain numbers: what the evidence (logme.h) and the head fit
// (head_fit.h) work on.
#pragma once

#include <cstdint>
#include <span>

#include "ymir/base/result.h"

namespace ymir {

// Row-major [rows, columns]; a view.
struct Features {
  std::span<const float> values{};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// At least two rows and one column, as many values as that, one label a row, all finite.
Result<> check(const Features& features, std::size_t num_labels);
// Every label in [0, num_classes), at least two of them different.
Result<> check_labels(std::span<const std::int32_t> labels, int num_classes);

}  // namespace ymir
