#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

#include "ymir/tune/petl/head_torch.h"
#include "ymir/tune/petl/lora_adapter_torch.h"

namespace ymir {
namespace {

constexpr std::array<std::string_view, kNumSites> kModules = {
    "attention.self.query",   "attention.self.key", "attention.self.value",
    "attention.output.dense", "intermediate.dense", "output.dense"};

Shape map_shape(const EncoderShape& shape, Site site) {  // {out, in}
  switch (site) {
    case Site::kFfnIn:
      return {shape.ffn, shape.hidden};
    case Site::kFfnOut:
      return {shape.hidden, shape.ffn};
    default:
      return {shape.hidden, shape.hidden};
  }
}

bool matches(const std::string& name, const std::string& target) {
  return name == target || name.ends_with("." + target);
}

Result<> check_targets(const EncoderShape& shape, const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    if (matches("pooler.dense", target))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" also means pooler.dense, which takes no adapter; name "
                               "attention.output.dense, intermediate.dense or output.dense",
                               target)};
    bool found = false;
    for (int layer = 0; layer < shape.layers; ++layer)
      for (std::size_t site = 0; site < kNumSites; ++site)
        found = found || matches(module_name(layer, static_cast<Site>(site)), target);
    if (!found)
      return Error{ErrorCode::kInvalidArgument, fmt::format("no module matches \"{}\" (sites: {})",
                                                            target, fmt::join(kModules, ", "))};
  }
  return Ok{};
}

const TensorView* find(const TensorMap& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

}  // namespace

std::string module_name(int layer, Site site) {
  return fmt::format("encoder.layer.{}.{}", layer, kModules[static_cast<std::size_t>(site)]);
}

Result<LoraAdapter> make_lora(const EncoderShape& shape, const MethodSpec& method) {
  std::vector<std::string> targets = method.targets;
  if (targets.empty()) targets = {"query", "value"};
  YMIR_TRY(check_targets(shape, targets));
  if (method.rank < 1)
    return Error{ErrorCode::kInvalidArgument, fmt::format("rank must be >= 1: {}", method.rank)};
  LoraAdapter adapter;
  adapter.rank = method.rank;
  adapter.scale = method.alpha / method.rank;
  adapter.dropout = kernels::make_dropout(method.dropout);
  adapter.layers = shape.layers;
  for (int layer = 0; layer < shape.layers; ++layer) {
    for (std::size_t site = 0; site < kNumSites; ++site) {
      const std::string name = module_name(layer, static_cast<Site>(site));
      bool wanted = false;
      for (const std::string& target : targets) wanted = wanted || matches(name, target);
      if (!wanted) continue;
      const Shape full = map_shape(shape, static_cast<Site>(site));
      const std::string path = "base_model.model.bert." + name;
      const std::size_t a = adapter.layout.add(path + ".lora_A.weight", {method.rank, full[1]});
      const std::size_t b = adapter.layout.add(path + ".lora_B.weight", {full[0], method.rank});
      adapter.slots.push_back({layer, static_cast<Site>(site), a, b});
    }
  }
  return adapter;
}

at::Tensor initial_lora(const LoraAdapter& adapter, std::uint64_t seed) {
  at::Tensor values = adapter.layout.zeros();
  for (const LoraAdapter::Slot& slot : adapter.slots) {
    at::Tensor a = adapter.layout.view(values, slot.a);
    fill_uniform(a, seed, adapter.layout.infos()[slot.a].name,
                 1.0 / std::sqrt(static_cast<double>(a.size(1))));
  }
  return values;
}

SlotTable no_slots(const EncoderShape& shape) {
  return SlotTable(static_cast<std::size_t>(shape.layers));
}

SlotTable bind_slots(const LoraAdapter& adapter, const at::Tensor& values) {
  SlotTable table(static_cast<std::size_t>(adapter.layers));
  for (const LoraAdapter::Slot& slot : adapter.slots)
    table[static_cast<std::size_t>(slot.layer)][static_cast<std::size_t>(slot.site)] = {
        adapter.layout.view(values, slot.a), adapter.layout.view(values, slot.b), adapter.scale,
        adapter.dropout, random_site(Purpose::kLora, slot.layer, static_cast<int>(slot.site))};
  return table;
}

GradientTable bind_gradients(const LoraAdapter& adapter, const at::Tensor& gradient) {
  GradientTable table(static_cast<std::size_t>(adapter.layers));
  for (const LoraAdapter::Slot& slot : adapter.slots)
    table[static_cast<std::size_t>(slot.layer)][static_cast<std::size_t>(slot.site)] = {
        adapter.layout.view(gradient, slot.a), adapter.layout.view(gradient, slot.b)};
  return table;
}

Result<at::Tensor> transferred_lora(const LoraAdapter& adapter, const TensorMap& source,
                                    int source_rank, double source_scale, double strength,
                                    std::uint64_t seed) {
  if (source_rank > adapter.rank)
    return Error{ErrorCode::kConflict,
                 fmt::format("the source's rank is higher: {} > {}", source_rank, adapter.rank)};
  std::size_t known = 0;
  for (const auto& [name, view] : source) known += name.find(".lora_") != std::string::npos;
  if (known != 2 * adapter.slots.size())
    return Error{ErrorCode::kConflict, fmt::format("the source adapts {} modules, this job {}",
                                                   known / 2, adapter.slots.size())};
  // Extra rows of A keep their random start: their columns of B are 0, the function is unchanged.
  at::Tensor values = initial_lora(adapter, seed);
  const auto factor = static_cast<float>(strength * source_scale / adapter.scale);
  for (const LoraAdapter::Slot& slot : adapter.slots) {
    at::Tensor a = adapter.layout.view(values, slot.a), b = adapter.layout.view(values, slot.b);
    const TensorView* from_a = find(source, adapter.layout.infos()[slot.a].name);
    const TensorView* from_b = find(source, adapter.layout.infos()[slot.b].name);
    if (from_a == nullptr || from_b == nullptr || from_a->shape != Shape{source_rank, a.size(1)} ||
        from_b->shape != Shape{b.size(0), source_rank})
      return Error{ErrorCode::kConflict, "the source's adapter has no fitting slot for " +
                                             module_name(slot.layer, slot.site)};
    YMIR_TRY_ASSIGN(const std::vector<float> values_a, to_f32(*from_a));
    YMIR_TRY_ASSIGN(const std::vector<float> values_b, to_f32(*from_b));
    std::memcpy(a.mutable_data_ptr<float>(), values_a.data(), values_a.size() * sizeof(float));
    float* to_b = b.mutable_data_ptr<float>();
    for (std::int64_t row = 0; row < b.size(0); ++row)
      for (std::int64_t column = 0; column < source_rank; ++column)
        to_b[row * adapter.rank + column] =
            factor * values_b[static_cast<std::size_t>(row * source_rank + column)];
  }
  return values;
}

}  // namespace ymir
