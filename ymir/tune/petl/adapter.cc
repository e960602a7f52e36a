#include "ymir/tune/petl/adapter_torch.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ymir/tune/petl/head_torch.h"
#include "ymir/tune/petl/targets.h"

namespace ymir {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::string_view last_part(std::string_view module) {
  return module.substr(module.find_last_of('.') + 1);
}

// The value of the first pattern that matches the module, as PEFT: its end, or a dot before it.
template <class Value>
Value by_pattern(const std::map<std::string, Value>& patterns, std::string_view module,
                 Value otherwise) {
  for (const auto& [pattern, value] : patterns)
    if (matches_module(module, pattern)) return value;
  return otherwise;
}

Result<> add_lora(AdapterPlan& plan, const Encoder& encoder) {
  const EncoderShape& shape = encoder.shape;
  const Family& family = family_of(shape.family);
  const MethodSpec& method = plan.method;
  const std::vector<std::string> targets = target_modules(family, method);
  YMIR_TRY(check_targets(family, shape.layers, targets));
  for (int layer = 0; layer < shape.layers; ++layer) {
    for (const Site site : kAllSites) {
      if (!family.has(site)) continue;
      const std::string module = family.module(layer, site);
      if (std::none_of(targets.begin(), targets.end(),
                       [&](const std::string& target) { return matches_module(module, target); }))
        continue;
      const std::string path = fmt::format("{}{}{}", kPrefix, family.prefix, module);
      AdapterPlan::LoraPlace place{layer, site, 0, 0, {}, 0, 0};
      place.rank = by_pattern(method.rank_pattern, module, method.rank);
      if (place.rank < 1) return refused(fmt::format("rank must be >= 1: {}", place.rank));
      const double alpha = by_pattern(method.alpha_pattern, module, method.alpha);
      place.scale = alpha / (method.rank_stabilised ? std::sqrt(place.rank) : place.rank);
      place.a = plan.layout.add(path + ".lora_A.weight", {place.rank, shape.width_in(site)});
      place.b = plan.layout.add(path + ".lora_B.weight", {shape.width_out(site), place.rank});
      if (method.magnitude)
        place.magnitude =
            plan.layout.add(path + ".lora_magnitude_vector", {shape.width_out(site)}, false);
      plan.lora.push_back(place);
    }
  }
  return Ok{};
}

Result<> add_bottlenecks(AdapterPlan& plan, const Encoder& encoder) {
  const EncoderShape& shape = encoder.shape;
  const Family& family = family_of(shape.family);
  const std::int64_t width = plan.method.width;
  if (width < 1) return refused(fmt::format("width must be >= 1: {}", width));
  for (int layer = 0; layer < shape.layers; ++layer)
    for (const bool after_ffn : {false, true}) {
      const std::string path =
          fmt::format("{}{}{}.adapter", kPrefix, family.prefix,
                      family.module(layer, after_ffn ? Site::kFfnOut : Site::kAttentionOut));
      const std::size_t first = plan.layout.add(path + ".down.weight", {width, shape.hidden});
      plan.layout.add(path + ".down.bias", {width}, false);
      plan.layout.add(path + ".up.weight", {shape.hidden, width});
      plan.layout.add(path + ".up.bias", {shape.hidden}, false);
      plan.bottlenecks.push_back({layer, after_ffn, first});
    }
  return Ok{};
}

// Leading dimensions of 1 and convolutions as the matrices that the encoder has.
Shape bound_shape(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  if (shape.size() == 3) return {count / shape.back(), shape.back()};
  if (shape.size() == 4) return {shape.front(), count / shape.front()};
  return shape;
}

bool is_vector(const std::string& name) {
  return name.ends_with(".bias") || name.ends_with(".gain");
}

bool wanted(const MethodSpec& method, const EncoderShape& shape, const std::string& name) {
  if (method.kind == "full") return true;
  if (method.kind == "bitfit") return name.ends_with(".bias");
  if (name.starts_with("final_norm.")) return true;
  if (!name.starts_with("layer.")) return false;
  return std::stoi(name.substr(6)) >= shape.layers - method.layers;
}

Result<> add_weights(AdapterPlan& plan, const Encoder& encoder) {
  const EncoderShape& shape = encoder.shape;
  const MethodSpec& method = plan.method;
  if (method.kind == "top_k" && (method.layers < 1 || method.layers > shape.layers))
    return refused(fmt::format("layers must be 1..{}: {}", shape.layers, method.layers));
  YMIR_CHECK(encoder.entries != nullptr, "the encoder knows its weights' names");
  const std::string prefix = std::string(kPrefix) + std::string(family_of(shape.family).prefix);
  for (const ImageEntry& entry : *encoder.entries) {
    if (!wanted(method, shape, entry.name)) continue;
    AdapterPlan::WeightPlace place{entry.name, plan.layout.infos().size(),
                                   bound_shape(entry.shape)};
    Shape part = entry.shape;
    for (std::size_t i = 0; i < entry.sources.size(); ++i) {
      if (!entry.heights.empty()) part[0] = entry.heights[i];
      const bool outside = entry.name.starts_with("output.");  // lm_head has no prefix
      plan.layout.add((outside ? std::string(kPrefix) : prefix) + entry.sources[i], part,
                      !is_vector(entry.name), i > 0);
    }
    plan.weights.push_back(std::move(place));
  }
  if (plan.weights.empty())
    return refused(fmt::format("the model has nothing that {} trains", method.kind));
  return Ok{};
}

at::Tensor* part(Linear& linear, std::string_view name) {
  return name == "weight" ? &linear.weight : &linear.bias;
}
at::Tensor* part(NormWeights& norm, std::string_view name) {
  return name == "gain" ? &norm.gain : &norm.bias;
}

// The tensor of an image entry's name.
at::Tensor* weight_of(Encoder& e, std::string_view name) {
  if (name == "words") return &e.words;
  if (name == "positions") return &e.positions;
  if (name == "token_types") return &e.token_types;
  if (name == "class_token") return &e.class_token;
  const std::string_view end = last_part(name);
  const std::string_view owner = name.substr(0, name.size() - end.size() - 1);
  if (owner == "patches") return part(e.patches, end);
  if (owner == "embedding_norm") return part(e.embedding_norm, end);
  if (owner == "final_norm") return part(e.final_norm, end);
  if (owner == "pooler") return part(e.pooler, end);
  if (owner == "output") return part(e.output, end);
  const std::string_view in_layer = owner.substr(std::string_view("layer.").size());
  EncoderLayer& layer = e.layers[static_cast<std::size_t>(std::stoi(std::string(in_layer)))];
  const std::string_view site = last_part(owner);
  if (site == "qkv") return part(layer.qkv, end);
  if (site == "attention_out") return part(layer.attention_out, end);
  if (site == "ffn_in") return part(layer.ffn_in, end);
  if (site == "ffn_out") return part(layer.ffn_out, end);
  if (site == "attention_norm") return part(layer.attention_norm, end);
  YMIR_CHECK(site == "ffn_norm", "every entry of the image has a place");
  return part(layer.ffn_norm, end);
}

at::Tensor view_of_parts(const AdapterPlan& plan, const AdapterPlan::WeightPlace& place,
                         const at::Tensor& flat) {
  std::int64_t count = 1;
  for (const std::int64_t size : place.shape) count *= size;
  return flat.narrow(0, plan.layout.infos()[place.first].offset, count).view(place.shape);
}

// W of a LoRA place.
at::Tensor frozen_weight(const Encoder& encoder, const AdapterPlan::LoraPlace& place) {
  const EncoderShape& s = encoder.shape;
  const EncoderLayer& layer = encoder.layers[static_cast<std::size_t>(place.layer)];
  switch (place.site) {
    case Site::kQuery:
      return layer.qkv.weight.narrow(0, 0, s.query_width());
    case Site::kKey:
      return layer.qkv.weight.narrow(0, s.query_width(), s.kv_width());
    case Site::kValue:
      return layer.qkv.weight.narrow(0, s.query_width() + s.kv_width(), s.kv_width());
    case Site::kAttentionOut:
      return layer.attention_out.weight;
    case Site::kFfnIn:
      return layer.ffn_in.weight.narrow(0, 0, s.ffn);
    case Site::kFfnGate:
      return layer.ffn_in.weight.narrow(0, s.ffn, s.ffn);
    case Site::kFfnOut:
      break;
  }
  return layer.ffn_out.weight;
}

const TensorView* find(const TensorMap& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

// to = (to * (1 - strength)) + strength * source for a tensor of equal shape.
Result<> blend(const TensorMap& source, const ParameterInfo& info, double strength, at::Tensor to) {
  const TensorView* from = find(source, info.name);
  if (from == nullptr || from->shape != info.shape)
    return Error{ErrorCode::kConflict, "the source's adapter has no fitting " + info.name};
  YMIR_TRY_ASSIGN(const std::vector<float> values, to_f32(*from));
  float* data = to.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    data[i] = strength == 1 ? values[i]
                            : static_cast<float>((1 - strength) * data[i] + strength * values[i]);
  return Ok{};
}

Result<> transfer_lora(const AdapterPlan& plan, const AdapterPlan::LoraPlace& place,
                       const AdapterSource& source, double strength, const at::Tensor& values) {
  at::Tensor a = plan.layout.view(values, place.a), b = plan.layout.view(values, place.b);
  const ParameterInfo &info_a = plan.layout.infos()[place.a],
                      &info_b = plan.layout.infos()[place.b];
  const TensorView* from_a = find(source.tensors, info_a.name);
  const TensorView* from_b = find(source.tensors, info_b.name);
  if (from_a == nullptr || from_b == nullptr || from_a->shape != Shape{source.rank, a.size(1)} ||
      from_b->shape != Shape{b.size(0), source.rank})
    return Error{ErrorCode::kConflict,
                 "the source's adapter has no fitting slot for " + info_a.name};
  YMIR_TRY_ASSIGN(const std::vector<float> values_a, to_f32(*from_a));
  YMIR_TRY_ASSIGN(const std::vector<float> values_b, to_f32(*from_b));
  std::copy(values_a.begin(), values_a.end(), a.mutable_data_ptr<float>());
  const auto factor = static_cast<float>(strength * source.scale / place.scale);
  float* to_b = b.mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < b.size(0); ++row)
    for (std::int64_t column = 0; column < source.rank; ++column)
      to_b[row * place.rank + column] =
          factor * values_b[static_cast<std::size_t>(row * source.rank + column)];
  return Ok{};
}

}  // namespace

Result<AdapterPlan> make_adapter(const Encoder& encoder, const MethodSpec& method) {
  AdapterPlan plan;
  plan.method = method;
  plan.layers = encoder.shape.layers;
  plan.dropout = kernels::make_dropout(method.dropout);
  if (method.kind == "lora") {
    YMIR_TRY(add_lora(plan, encoder));
  } else if (method.kind == "bottleneck") {
    YMIR_TRY(add_bottlenecks(plan, encoder));
  } else if (method.kind == "prefix") {
    if (method.length < 1) return refused(fmt::format("length must be >= 1: {}", method.length));
    plan.prefix =
        plan.layout.add("prompt_embeddings",
                        {method.length, std::int64_t{2} * plan.layers * encoder.shape.kv_width()});
  } else if (method.kind == "bitfit" || method.kind == "top_k" || method.kind == "full") {
    YMIR_TRY(add_weights(plan, encoder));
  } else {
    return refused(
        fmt::format("method is not one of lora, bottleneck, prefix, bitfit, top_k, "
                    "full: {}",
                    method.kind));
  }
  return plan;
}

at::Tensor initial_adapter(const AdapterPlan& plan, const Encoder& encoder, std::uint64_t seed) {
  at::Tensor values = plan.layout.zeros();
  for (const AdapterPlan::LoraPlace& place : plan.lora) {
    at::Tensor a = plan.layout.view(values, place.a);
    fill_uniform(a, seed, plan.layout.infos()[place.a].name,
                 1.0 / std::sqrt(static_cast<double>(a.size(1))));
    if (place.magnitude)
      plan.layout.view(values, *place.magnitude)
          .copy_(
              at::linalg_vector_norm(in_f32(frozen_weight(encoder, place)), 2, at::IntArrayRef{1}));
  }
  for (const AdapterPlan::BottleneckPlace& place : plan.bottlenecks)
    fill_normal(plan.layout.view(values, place.first), seed, plan.layout.infos()[place.first].name,
                0.02);
  if (plan.prefix)
    fill_normal(plan.layout.view(values, *plan.prefix), seed, "prompt_embeddings", 0.02);
  Encoder from = encoder;
  for (const AdapterPlan::WeightPlace& place : plan.weights)
    view_of_parts(plan, place, values).copy_(*weight_of(from, place.name));
  return values;
}

SlotTable no_slots(const EncoderShape& shape) {
  return SlotTable(static_cast<std::size_t>(shape.layers));
}

Trained bind(const AdapterPlan& plan, const at::Tensor& flat) {
  const auto layers = static_cast<std::size_t>(plan.layers);
  Trained out;
  out.slots.resize(layers);
  for (const AdapterPlan::LoraPlace& place : plan.lora) {
    LoraSlot& to =
        out.slots[static_cast<std::size_t>(place.layer)].lora[static_cast<std::size_t>(place.site)];
    to.a = plan.layout.view(flat, place.a);
    to.b = plan.layout.view(flat, place.b);
    if (place.magnitude) to.magnitude = plan.layout.view(flat, *place.magnitude);
    to.scale = place.scale;
    to.dropout = plan.dropout;
    to.random_site = random_site(Purpose::kLora, place.layer, static_cast<int>(place.site));
  }
  for (const AdapterPlan::BottleneckPlace& place : plan.bottlenecks) {
    LayerSlots& layer = out.slots[static_cast<std::size_t>(place.layer)];
    BottleneckSlot& to = place.after_ffn ? layer.after_ffn : layer.after_attention;
    to.down = plan.layout.view(flat, place.first);
    to.down_bias = plan.layout.view(flat, place.first + 1);
    to.up = plan.layout.view(flat, place.first + 2);
    to.up_bias = plan.layout.view(flat, place.first + 3);
  }
  if (plan.prefix) {
    const at::Tensor all = plan.layout.view(flat, *plan.prefix);
    const std::int64_t width = all.size(1) / (2 * plan.layers);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const auto at = static_cast<std::int64_t>(2 * layer) * width;
      out.slots[layer].prefix = {all.narrow(1, at, width), all.narrow(1, at + width, width)};
    }
  }
  if (!plan.weights.empty()) out.weights.layers.resize(layers);
  for (const AdapterPlan::WeightPlace& place : plan.weights)
    *weight_of(out.weights, place.name) = view_of_parts(plan, place, flat);
  return out;
}

Result<at::Tensor> transferred_adapter(const AdapterPlan& plan, const Encoder& encoder,
                                       const AdapterSource& source, double strength,
                                       std::uint64_t seed) {
  at::Tensor values = initial_adapter(plan, encoder, seed);
  std::size_t known = 0;
  for (const auto& [name, view] : source.tensors) known += name.ends_with(".lora_A.weight") ? 1 : 0;
  if (known != plan.lora.size())
    return Error{ErrorCode::kConflict,
                 fmt::format("the source adapts {} modules, this job {}", known, plan.lora.size())};
  // Extra rows of A keep their random start: their columns of B are 0, the function is unchanged.
  for (const AdapterPlan::LoraPlace& place : plan.lora) {
    if (source.rank > place.rank)
      return Error{ErrorCode::kConflict,
                   fmt::format("the source's rank is higher: {} > {}", source.rank, place.rank)};
    YMIR_TRY(transfer_lora(plan, place, source, strength, values));
    if (place.magnitude)
      YMIR_TRY(blend(source.tensors, plan.layout.infos()[*place.magnitude], strength,
                     plan.layout.view(values, *place.magnitude)));
  }
  if (!plan.lora.empty()) return values;
  // Whole values move towards the source's; of a bottleneck the part that ends it.
  for (std::size_t i = 0; i < plan.layout.infos().size(); ++i) {
    const ParameterInfo& info = plan.layout.infos()[i];
    const bool inner = info.name.find(".adapter.down.") != info.name.npos;
    YMIR_TRY(blend(source.tensors, info, inner || plan.prefix ? 1 : strength,
                   plan.layout.view(values, i)));
  }
  return values;
}

}  // namespace ymir
