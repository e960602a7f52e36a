// Merging an adapter into its backbone: a model folder that needs neither Ymir nor PEFT.
//
// LoRA becomes W + s B A, computed in f64 and stored in the base's type; with magnitudes (DoRA) the
// rows are scaled as well; whole values (bitfit, top_k, full) replace the base's. The head goes
// in with the number of labels and their names. Bottleneck and prefix can't be merged. Torch-free.
#pragma once

#include <string>

#include "ymir/base/result.h"

namespace ymir {

struct MergeRequest {
  std::string model{};    // folder
  std::string adapter{};  // folder, PEFT's form
  std::string output{};   // folder to write; must not exist
};
struct Merged {
  int num_changed = 0;  // tensors of the backbone that differ now
};
// kConflict: the adapter has a tensor that the model has no place for, or `output` exists.
Result<Merged> merge_adapter(const MergeRequest& request);

}  // namespace ymir
