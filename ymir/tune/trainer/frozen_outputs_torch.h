// FrozenOutputs: what reaches the lowest trained layer of a frozen prefix, kept per row of a data
// set. Without dropout below that layer it is a constant, so epochs after the first, other
// jobs on the same rows and later runs begin at that layer. Every row's values are the same
// bits whatever batch it was computed in (ExactRows), so a run does not depend on what was kept.
//
// In files of the cache (kept_rows.h), which all workers of a node share. One thread uses an
// object.
#pragma once

#include <memory>
#include <string>

#include "ymir/tune/data/kept_rows.h"
#include "ymir/tune/trainer/evaluate_torch.h"

namespace ymir {

class FrozenOutputs {
 public:
  FrozenOutputs(int layers, KeptRows rows) : layers_(layers), rows_(std::move(rows)) {}
  // Sets the input's `hidden`: from what is kept, else computed, and kept while there is room.
  void fill(const Encoder& encoder, Batch& batch);

 private:
  at::Tensor compute(const Encoder& encoder, const EncoderInput& input) const;

  int layers_;
  KeptRows rows_;
};

struct FrozenOutputsCache {
  std::string folder{};
  std::uint64_t max_bytes = 0;  // of all files; the least recently used ones go first

  // `key`: everything that the values depend on besides `layers`: weights, precision, rows.
  Result<std::shared_ptr<FrozenOutputs>> open(const std::string& key, int layers,
                                              const Encoder& encoder,
                                              const EvaluationRows& rows) const;
};

// The same rows, their batches filled. `encoder` outlives them.
EvaluationRows with_frozen_outputs(const EvaluationRows& rows,
                                   std::shared_ptr<FrozenOutputs> outputs, const Encoder& encoder);

}  // namespace ymir
