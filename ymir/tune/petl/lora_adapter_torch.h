// A LoRA adapter over an encoder: which sites have slots, their names, first values, and the tables
// that bind flat blocks to the model. To add another method (bottleneck, BitFit): a file like this
// one that fills tables of its own.
#pragma once

#include "ymir/core/job.h"
#include "ymir/tune/model/bert_torch.h"
#include "ymir/tune/petl/parameters_torch.h"

namespace ymir {

struct LoraAdapter {
  struct Slot {
    int layer = 0;
    Site site = Site::kQuery;
    std::size_t a = 0, b = 0;  // positions in the layout
  };
  int rank = 0;
  double scale = 0;  // alpha / rank
  kernels::Dropout dropout{};
  int layers = 0;
  std::vector<Slot> slots{};
  ParameterLayout layout{};
};

// "encoder.layer.3.attention.self.query", as transformers names it below "bert.".
std::string module_name(int layer, Site site);

// Slots at every module whose name is, or ends in "." and, one of the targets (PEFT's rule for a
// list). kInvalidArgument: a target that matches nothing, or matches a module that has no slot.
Result<LoraAdapter> make_lora(const EncoderShape& shape, const MethodSpec& method);
// A: uniform as PEFT's Kaiming(a = sqrt 5), bound 1/sqrt(in); B: 0.
at::Tensor initial_lora(const LoraAdapter& adapter, std::uint64_t seed);

SlotTable bind_slots(const LoraAdapter& adapter, const at::Tensor& values);
GradientTable bind_gradients(const LoraAdapter& adapter, const at::Tensor& gradient);
SlotTable no_slots(const EncoderShape& shape);

// First values for a job that starts from `strength` times another's adapter (tensors under PEFT's
// names, that one's scale and rank). A source of lower rank is padded: same function. kConflict:
// higher rank, other sites or shapes.
Result<at::Tensor> transferred_lora(const LoraAdapter& adapter, const TensorMap& source,
                                    int source_rank, double source_scale, double strength,
                                    std::uint64_t seed);

}  // namespace ymir
