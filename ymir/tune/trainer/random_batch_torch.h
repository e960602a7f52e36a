// For tests: a batch of random token rows of two classes in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "ymir/tune/model/random_encoder_torch.h"
#include "ymir/tune/trainer/task_torch.h"

namespace ymir::testing {

inline Batch random_batch(const std::vector<int>& lengths, std::uint64_t seed) {
  Batch batch;
  batch.input = random_input(lengths, seed);
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    batch.rows.push_back(static_cast<std::uint32_t>(row));
    batch.classes.push_back(static_cast<std::int32_t>(row % 2));
  }
  return batch;
}

}  // namespace ymir::testing
