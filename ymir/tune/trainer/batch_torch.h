// Rows of a tokenised data set as the encoder's ragged input, with what the loss needs.
#pragma once

#include <functional>
#include <span>

#include "ymir/tune/model/bert_torch.h"
#include "ymir/tune/trainer/loss.h"

namespace ymir {

struct Batch {
  EncoderInput input{};
  std::vector<std::uint32_t> rows{};  // of the data set: what randomness is keyed by
  std::vector<std::int32_t> classes{};
  std::vector<float> values{};
  Targets targets(TaskKind kind, int outputs) const { return {kind, outputs, classes, values}; }
};

// Gives the batch of these row numbers; a pure function of them.
using BatchMaker = std::function<Batch(std::span<const std::uint32_t> rows)>;

}  // namespace ymir
