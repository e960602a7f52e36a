#include <ATen/Context.h>
#include <ATen/ops/from_blob.h>

#include <map>

#include "ymir/tune/model/backbone_torch.h"

namespace ymir {
namespace {

using Named = std::map<std::string, at::Tensor>;

at::Tensor find(const Named& named, const std::string& name) {
  const auto found = named.find(name);
  return found == named.end() ? at::Tensor() : found->second;
}

// The frozen matrices' packed copies are kept up to here (both ways, 8 bytes a value); those of a
// larger model are made anew at each product.
constexpr std::int64_t kMostPacked = 128 << 20;  // values

std::int64_t count_values(const ModelConfig& config) {
  const std::int64_t h = config.hidden_size, f = config.intermediate_size;
  return config.num_layers * (4 * h * h + (config.gated ? 3 : 2) * h * f);
}

Encoder bind_encoder(const ModelConfig& config, const Named& kept, const Named& bf16) {
  Encoder encoder;
  encoder.shape = shape_of(config);
  const bool keep_packed = count_values(config) <= kMostPacked;
  const auto linear = [&](const std::string& name) {
    Linear out{find(kept, name + ".weight"), find(bf16, name + ".weight"),
               find(kept, name + ".bias"), nullptr, 0};
    if (keep_packed && out.weight.defined())
      out.packed = std::make_shared<PackedWeight>(PackedWeight{out.values(), {}, {}});
    return out;
  };
  const auto norm = [&](const std::string& name) {
    return NormWeights{find(kept, name + ".gain"), find(kept, name + ".bias"),
                       config.layer_norm_epsilon, config.norm == NormKind::kLayerNorm};
  };
  encoder.words = find(kept, "words");
  encoder.positions = find(kept, "positions");
  encoder.token_types = find(kept, "token_types");
  encoder.embedding_norm = norm("embedding_norm");
  if (config.is_image()) {
    const std::int64_t h = config.hidden_size;
    encoder.class_token = find(kept, "class_token").view({1, h});
    encoder.positions = encoder.positions.view({config.max_positions, h});
    encoder.patches = linear("patches");
    encoder.patches.weight = encoder.patches.weight.view({h, -1});
    encoder.patches.packed = nullptr;  // of the weight as the file has it
  }
  for (int number = 0; number < config.num_layers; ++number) {
    const std::string at = "layer." + std::to_string(number) + ".";
    encoder.layers.push_back({linear(at + "qkv"), linear(at + "attention_out"),
                              linear(at + "ffn_in"), linear(at + "ffn_out"),
                              norm(at + "attention_norm"), norm(at + "ffn_norm")});
  }
  encoder.final_norm = norm("final_norm");
  encoder.pooler = linear("pooler");
  encoder.output = linear("output");
  if (config.tied_output) encoder.output = {encoder.words, find(bf16, "words"), {}};
  return encoder;
}

}  // namespace

Result<std::unique_ptr<Backbone>> open_backbone(const ModelFiles& files, const std::string& cache,
                                                bool with_bf16, at::Device device) {
  YMIR_TRY_ASSIGN(BackboneImage image, BackboneImage::open(files, cache, with_bf16));
  auto backbone = std::make_unique<Backbone>(Backbone{files, std::move(image), {}, {}});
  // The mapping is read-only; from_blob has no form for that.
  const auto bound = [device](const void* data, const ImageEntry& entry) {
    const at::ScalarType type = entry.dtype == DType::kF32    ? at::kFloat
                                : entry.dtype == DType::kBF16 ? at::kBFloat16
                                                              : at::kHalf;
    return at::from_blob(const_cast<void*>(data), entry.shape, type).to(device);
  };
  Named kept, bf16;
  for (const ImageEntry& entry : backbone->image.entries()) {
    kept[entry.name] = bound(backbone->image.data(entry), entry);
    if (entry.dtype == DType::kBF16) bf16[entry.name] = kept[entry.name];
  }
  for (const ImageEntry& entry : backbone->image.copies16())
    bf16[entry.name] = bound(backbone->image.copy16(entry), entry);
  backbone->encoder = bind_encoder(files.config, kept, {});
  backbone->encoder.entries =
      std::make_shared<const std::vector<ImageEntry>>(backbone->image.entries());
  if (with_bf16) {
    backbone->encoder16 = bind_encoder(files.config, kept, bf16);
    backbone->encoder16.entries = backbone->encoder.entries;
  }
  return backbone;
}

Result<at::Device> find_device(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name != "cuda")
    return Error{ErrorCode::kInvalidArgument, "device is not cpu or cuda: " + name};
  if (!at::hasCUDA())
    return Error{ErrorCode::kInvalidArgument,
                 "device cuda: this program was built without it (-DYMIR_CUDA=ON), or no driver "
                 "gives a device"};
  return at::Device(at::kCUDA, 0);
}

}  // namespace ymir
