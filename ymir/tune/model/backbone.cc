#include <ATen/ops/from_blob.h>

#include <map>

#include "ymir/tune/model/backbone_torch.h"

namespace ymir {
namespace {

using Named = std::map<std::string, at::Tensor>;

Encoder bind_encoder(const ModelConfig& config, const Named& f32, const Named& bf16) {
  Encoder encoder;
  encoder.shape = {config.num_layers,        config.hidden_size,     config.num_heads,
                   config.intermediate_size, config.vocabulary_size, config.max_positions,
                   config.num_token_types};
  const auto linear = [&](const std::string& name) {
    Linear out;
    out.weight = f32.at(name + ".weight");
    out.bias = f32.at(name + ".bias");
    if (const auto found = bf16.find(name + ".weight"); found != bf16.end())
      out.weight16 = found->second;
    return out;
  };
  const auto norm = [&](const std::string& name) {
    return NormWeights{f32.at(name + ".gain"), f32.at(name + ".bias"), config.layer_norm_epsilon};
  };
  encoder.words = f32.at("words");
  encoder.positions = f32.at("positions");
  encoder.token_types = f32.at("token_types");
  encoder.embedding_norm = norm("embedding_norm");
  for (int number = 0; number < config.num_layers; ++number) {
    const std::string at = "layer." + std::to_string(number) + ".";
    encoder.layers.push_back({linear(at + "qkv"), linear(at + "attention_out"),
                              linear(at + "ffn_in"), linear(at + "ffn_out"),
                              norm(at + "attention_norm"), norm(at + "ffn_norm")});
  }
  if (f32.contains("pooler.weight")) encoder.pooler = linear("pooler");
  return encoder;
}

}  // namespace

Result<std::unique_ptr<Backbone>> open_backbone(const ModelFiles& files, const std::string& cache,
                                                bool with_bf16) {
  YMIR_TRY_ASSIGN(BackboneImage image, BackboneImage::open(files, cache, with_bf16));
  auto backbone = std::make_unique<Backbone>(Backbone{files, std::move(image), {}, {}});
  // The mapping is read-only; from_blob has no form for that.
  Named f32, bf16;
  for (const ImageEntry& entry : backbone->image.entries())
    f32[entry.name] =
        at::from_blob(const_cast<float*>(backbone->image.f32(entry)), entry.shape, at::kFloat);
  for (const ImageEntry& entry : backbone->image.entries16())
    bf16[entry.name] = at::from_blob(const_cast<std::uint16_t*>(backbone->image.bf16(entry)),
                                     entry.shape, at::kBFloat16);
  backbone->encoder = bind_encoder(files.config, f32, {});
  if (with_bf16) backbone->encoder16 = bind_encoder(files.config, f32, bf16);
  return backbone;
}

}  // namespace ymir
