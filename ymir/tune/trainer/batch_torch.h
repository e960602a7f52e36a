// Rows of a tokenised data set as the encoder's ragged input, with what the loss needs.
#pragma once

#include <functional>
#include <span>

#include "ymir/tune/model/encoder_torch.h"
#include "ymir/tune/trainer/loss.h"

namespace ymir {

struct Batch {
  EncoderInput input{};
  std::vector<std::uint32_t> rows{};    // of the data set: what randomness is keyed by
  std::vector<std::int32_t> classes{};  // classify: one a row
  std::vector<float> values{};        // regress: one a row; multi-label: `outputs` of 0 or 1 a row
  std::vector<std::uint8_t> learn{};  // language model: per token, 1 = to be learnt (not a prompt)
  Targets targets(TaskKind kind, int outputs) const { return {kind, outputs, classes, values}; }
  std::int64_t num_rows() const { return input.layout.rows(); }
};

// Rows first .. first + count of a batch.
Batch part_of(const Batch& batch, std::int64_t first, std::int64_t count);

// Gives the batch of these row numbers; a pure function of them.
using BatchMaker = std::function<Batch(std::span<const std::uint32_t> rows)>;

}  // namespace ymir
