// FrozenOutputs: what reaches the lowest trained layer of a frozen prefix, kept per row of a data
// set. Without dropout below that layer it is a constant, so epochs after the first, other
// jobs on the same rows and later runs begin at that layer. Every row's values are the same
// bits whatever batch it was computed in (ExactRows), so a run does not depend on what was kept.
//
// In memory, within one budget for all. One thread uses a store.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "ymir/tune/trainer/evaluate_torch.h"

namespace ymir {

class FrozenOutputs {
 public:
  struct Budget {
    std::size_t limit = 0, used = 0;  // bytes
  };
  FrozenOutputs(int layers, std::size_t rows, std::shared_ptr<Budget> budget);
  ~FrozenOutputs();
  FrozenOutputs(const FrozenOutputs&) = delete;
  FrozenOutputs& operator=(const FrozenOutputs&) = delete;

  // Sets the input's `hidden`: from what is kept, else computed, and kept while there is room.
  void fill(const Encoder& encoder, Batch& batch);
  std::size_t kept() const { return kept_; }  // rows

 private:
  at::Tensor compute(const Encoder& encoder, const EncoderInput& input) const;
  void keep(std::uint32_t row, const at::Tensor& lines);

  int layers_;
  std::vector<at::Tensor> rows_;
  std::shared_ptr<Budget> budget_;
  std::size_t kept_ = 0, bytes_ = 0;
};

class FrozenOutputsStore {
 public:
  explicit FrozenOutputsStore(std::size_t limit);
  // `key`: everything that the values depend on besides `layers`: weights, precision, rows. Gives
  // the longest unused ones back when the budget is nearly spent.
  std::shared_ptr<FrozenOutputs> of(const std::string& key, int layers, std::size_t rows);

 private:
  struct Kept {
    std::string key{};
    std::shared_ptr<FrozenOutputs> outputs{};
  };
  std::shared_ptr<FrozenOutputs::Budget> budget_;
  std::list<Kept> kept_;  // newest use first
};

// The same rows, their batches filled. `encoder` outlives them.
EvaluationRows with_frozen_outputs(const EvaluationRows& rows,
                                   std::shared_ptr<FrozenOutputs> outputs, const Encoder& encoder);

}  // namespace ymir
