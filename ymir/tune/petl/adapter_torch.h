// AdapterPlan: what a job trains of a model, as a list of tensors with their places. One form for
// every method; methods differ only in which places they fill:
//
//   lora        A and B at linear sites, with a magnitude (DoRA) or rank-stabilised scale
//   bottleneck  two small linear maps behind the attention and behind the feed-forward part
//   prefix      keys and values of virtual tokens in every layer
//   bitfit      all biases of the backbone            (whole values, not differences)
//   top_k  all weights of the last layers and the final norm
//   full        all weights
//
// Values and gradients are flat blocks with this layout; bind() gives them their places in the
// model. To add a method: fill places in make_adapter, bind them, give them first values.
#pragma once

#include <optional>

#include "ymir/core/job.h"
#include "ymir/tune/model/encoder_torch.h"
#include "ymir/tune/petl/parameters_torch.h"

namespace ymir {

struct AdapterPlan {
  struct LoraPlace {
    int layer = 0;
    Site site = Site::kQuery;
    std::size_t a = 0, b = 0;  // positions in the layout
    std::optional<std::size_t> magnitude{};
    int rank = 0;
    double scale = 0;
  };
  struct BottleneckPlace {
    int layer = 0;
    bool after_ffn = false;
    std::size_t first = 0;  // down, its bias, up, its bias
  };
  struct WeightPlace {
    std::string name{};     // of the backbone image: "layer.3.qkv.weight"
    std::size_t first = 0;  // its parts stand behind one another
    Shape shape{};          // of the whole, as the encoder has it
  };
  MethodSpec method{};
  int layers = 0;
  kernels::Dropout dropout{};  // inside LoRA
  std::vector<LoraPlace> lora{};
  std::vector<BottleneckPlace> bottlenecks{};
  std::optional<std::size_t> prefix{};  // [length, layers * 2 * kv_width]
  std::vector<WeightPlace> weights{};
  ParameterLayout layout{};
};

// kInvalidArgument: a target that matches nothing or a module that has no slot, sizes out of range.
// LoRA's targets match a module's name or its end (PEFT's rule for a list); "query", "key" and
// "value" are known in every family.
Result<AdapterPlan> make_adapter(const Encoder& encoder, const MethodSpec& method);

// First values. LoRA: A uniform as PEFT's Kaiming(a = sqrt 5), bound 1/sqrt(in), B 0, magnitude the
// norms of W; bottleneck: up 0; prefix: normal(0.02); weights: the backbone's. Except for a prefix
// the model is unchanged by them.
at::Tensor initial_adapter(const AdapterPlan& plan, const Encoder& encoder, std::uint64_t seed);

// The plan's places in the model as views of a flat block, of values or of gradients.
Trained bind(const AdapterPlan& plan, const at::Tensor& flat);
SlotTable no_slots(const EncoderShape& shape);

// First values for a job that starts from `strength` times another's adapter (tensors under their
// exported names, LoRA with that one's rank and scale). A LoRA source of lower rank is padded: same
// function. kConflict: higher rank, other places or shapes.
struct AdapterSource {
  const TensorMap& tensors;
  int rank = 0;
  double scale = 0;
};
Result<at::Tensor> transferred_adapter(const AdapterPlan& plan, const Encoder& encoder,
                                       const AdapterSource& source, double strength,
                                       std::uint64_t seed);

}  // namespace ymir
