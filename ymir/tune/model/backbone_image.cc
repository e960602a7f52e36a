#include "ymir/tune/model/backbone_image.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <span>

#include "ymir/base/file.h"
#include "ymir/tune/checkpoint/half.h"

namespace ymir {
namespace {

constexpr const char* kVersion = "2";    // of the layout; part of the file's name
constexpr std::int64_t kAlignment = 64;  // elements: 256 bytes in f32, 128 in bf16

// `heights`: lines of each source where several are stacked.
void add(std::vector<ImageEntry>& entries, std::string name, Shape shape,
         std::vector<std::string> sources, std::vector<std::int64_t> heights = {}) {
  ImageEntry entry{std::move(name), std::move(shape), 0, std::move(sources), std::move(heights)};
  if (!entries.empty()) {
    const ImageEntry& last = entries.back();
    std::int64_t count = 1;
    for (const std::int64_t size : last.shape) count *= size;
    entry.offset = (last.offset + count + kAlignment - 1) / kAlignment * kAlignment;
  }
  entries.push_back(std::move(entry));
}

std::int64_t count_of(const ImageEntry& entry) {
  std::int64_t count = 1;
  for (const std::int64_t size : entry.shape) count *= size;
  return count;
}
std::int64_t total_of(const std::vector<ImageEntry>& entries) {
  return entries.back().offset + count_of(entries.back());
}

using Sources = std::map<std::string, TensorView>;

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

Result<Sources> sources_of(const Family& family, const ModelWeights& weights,
                           const std::string& where) {
  Sources sources;
  for (const auto& [name, view] : weights.tensors()) {
    const std::string plain = family.plain_name(name);
    if (family.ignores(plain)) continue;
    if (!sources.emplace(plain, view).second)
      return refused(fmt::format("{}: two tensors mean {}: {}", where, plain, name));
  }
  return sources;
}

ImageParts parts_of(const ModelConfig& config, const Family& family, const Sources& sources) {
  return {.pooler = family.head == HeadKind::kPooler && sources.contains("pooler.dense.weight") &&
                    sources.contains("pooler.dense.bias"),
          .output = sources.contains("lm_head.weight") && !config.tied_output};
}

// Every tensor of the layout is there as config.json says, and none beside it.
Result<> check_sources(const Sources& sources, const std::vector<ImageEntry>& entries,
                       const std::string& where) {
  std::set<std::string> used;
  for (const ImageEntry& entry : entries) {
    Shape expected = entry.shape;
    for (std::size_t part = 0; part < entry.sources.size(); ++part) {
      const std::string& name = entry.sources[part];
      if (!entry.heights.empty()) expected[0] = entry.heights[part];
      used.insert(name);
      const auto found = sources.find(name);
      if (found == sources.end())
        return refused(fmt::format("{}: tensor is missing: {}", where, name));
      const TensorView& tensor = found->second;
      if (tensor.shape != expected)
        return refused(fmt::format("{}: tensor {} is {}, config.json says {}", where, name,
                                   shape_text(tensor.shape), shape_text(expected)));
      const bool numbers = tensor.dtype == DType::kF64 || tensor.dtype == DType::kF32 ||
                           tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
      if (!numbers)
        return refused(fmt::format("{}: tensor {} is {}, not floating point", where, name,
                                   dtype_name(tensor.dtype)));
    }
  }
  for (const auto& [name, view] : sources)
    if (!used.contains(name))
      return refused(fmt::format("{}: tensor belongs to no part of the model: {}", where, name));
  return Ok{};
}

// Where a fault lies, for people: the file, or the folder of several.
const std::string& place_of(const ModelFiles& model) {
  return model.weights.size() == 1 ? model.weights.front() : model.folder;
}

Result<> copy_entry(const Sources& sources, const ImageEntry& entry, std::span<float> image) {
  std::int64_t at = entry.offset;
  for (const std::string& name : entry.sources) {
    YMIR_TRY_ASSIGN(const std::vector<float> values, to_f32(sources.at(name)));
    std::memcpy(image.data() + at, values.data(), values.size() * sizeof(float));
    at += static_cast<std::int64_t>(values.size());
  }
  return Ok{};
}

Result<> write_image(const std::string& path, DType dtype, std::int64_t count,
                     std::span<const std::byte> bytes, const std::string& key) {
  return write_safetensors(path, {{"weights", TensorView{dtype, {count}, bytes}}},
                           {{"ymir_image", kVersion}, {"key", key}});
}

Result<> build(const ModelFiles& model, const ImageParts& parts, const Sources& sources,
               const std::string& path32, const std::string& path16, bool with_bf16) {
  const auto entries = image_layout(model.config, parts, false);
  YMIR_TRY(check_sources(sources, entries, place_of(model)));
  std::vector<float> image(static_cast<std::size_t>(total_of(entries)));
  for (const ImageEntry& entry : entries) YMIR_TRY(copy_entry(sources, entry, image));
  if (!std::filesystem::exists(path32))
    YMIR_TRY(write_image(path32, DType::kF32, total_of(entries), std::as_bytes(std::span(image)),
                         model.key));
  if (!with_bf16 || std::filesystem::exists(path16)) return Ok{};
  const auto entries16 = image_layout(model.config, parts, true);
  std::vector<std::uint16_t> image16(static_cast<std::size_t>(total_of(entries16)));
  std::map<std::string, std::int64_t> offsets;
  for (const ImageEntry& entry : entries) offsets[entry.name] = entry.offset;
  for (const ImageEntry& entry : entries16)
    for (std::int64_t i = 0; i < count_of(entry); ++i)
      image16[static_cast<std::size_t>(entry.offset + i)] =
          bf16_bits(image[static_cast<std::size_t>(offsets.at(entry.name) + i)]);
  return write_image(path16, DType::kBF16, total_of(entries16), std::as_bytes(std::span(image16)),
                     model.key);
}

Result<SafetensorsFile> map_image(const std::string& path, DType dtype, std::int64_t count) {
  YMIR_TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  const TensorView* weights = file.find("weights");
  if (weights == nullptr || weights->dtype != dtype || weights->shape != Shape{count} ||
      reinterpret_cast<std::uintptr_t>(weights->bytes.data()) % 64 != 0)
    return Error{ErrorCode::kCorruption,
                 "backbone image does not fit its model; delete it: " + path};
  return file;
}

// Writes the list of entries in image order.
struct LayoutWriter {
  const ModelConfig& config;
  const Family& family;
  bool matrices_only = false;
  std::vector<ImageEntry> entries{};

  void vector(const std::string& name, Shape shape, std::vector<std::string> sources) {
    if (!matrices_only) add(entries, name, std::move(shape), std::move(sources));
  }
  void norm(const std::string& name, const std::string& module) {
    if (module.empty()) return;
    vector(name + ".gain", {config.hidden_size}, {module + ".weight"});
    if (config.norm == NormKind::kLayerNorm)
      vector(name + ".bias", {config.hidden_size}, {module + ".bias"});
  }
  void linear(const std::string& name, const Shape& shape, const std::vector<std::string>& modules,
              const std::vector<std::int64_t>& heights, bool biased) {
    std::vector<std::string> weights, biases;
    for (const std::string& module : modules) {
      weights.push_back(module + ".weight");
      biases.push_back(module + ".bias");
    }
    add(entries, name + ".weight", shape, weights, heights);
    if (biased && !matrices_only) add(entries, name + ".bias", {shape[0]}, biases, heights);
  }

  void embeddings() {
    const std::int64_t h = config.hidden_size;
    const auto weight = [](std::string_view module) { return std::string(module) + ".weight"; };
    if (!family.words.empty()) vector("words", {config.vocabulary_size, h}, {weight(family.words)});
    if (config.is_image()) {
      const std::int64_t patch = config.patch_size;
      const std::string module = "embeddings.patch_embeddings.projection";
      vector("class_token", {1, 1, h}, {"embeddings.cls_token"});
      vector("positions", {1, config.max_positions, h}, {std::string(family.positions)});
      vector("patches.weight", {h, config.num_channels, patch, patch}, {weight(module)});
      vector("patches.bias", {h}, {module + ".bias"});
    } else if (!family.positions.empty()) {
      vector("positions", {config.max_positions + config.position_offset, h},
             {std::string(family.positions)});
    }
    if (!family.token_types.empty())
      vector("token_types", {config.num_token_types, h}, {weight(family.token_types)});
    norm("embedding_norm", std::string(family.embedding_norm));
  }

  void layer(int number) {
    const std::int64_t h = config.hidden_size, f = config.intermediate_size;
    const std::int64_t wide = std::int64_t{config.num_heads} * config.head_width;
    const std::int64_t narrow = std::int64_t{config.num_kv_heads} * config.head_width;
    const std::string to = fmt::format("layer.{}.", number);
    const auto module = [&](Site site) { return family.module(number, site); };
    const auto norm_module = [&](std::string_view name) {
      return fmt::format("{}{}.{}", family.layer, number, name);
    };
    linear(to + "qkv", {wide + 2 * narrow, h},
           {module(Site::kQuery), module(Site::kKey), module(Site::kValue)}, {wide, narrow, narrow},
           config.attention_in_bias);
    linear(to + "attention_out", {h, wide}, {module(Site::kAttentionOut)}, {h},
           config.attention_out_bias);
    norm(to + "attention_norm", norm_module(family.attention_norm));
    if (config.gated) {
      linear(to + "ffn_in", {2 * f, h}, {module(Site::kFfnIn), module(Site::kFfnGate)}, {f, f},
             config.ffn_bias);
    } else {
      linear(to + "ffn_in", {f, h}, {module(Site::kFfnIn)}, {f}, config.ffn_bias);
    }
    linear(to + "ffn_out", {h, f}, {module(Site::kFfnOut)}, {h}, config.ffn_bias);
    norm(to + "ffn_norm", norm_module(family.ffn_norm));
  }

  void top(const ImageParts& parts) {
    const std::int64_t h = config.hidden_size;
    norm("final_norm", std::string(family.final_norm));
    if (parts.pooler) {
      vector("pooler.weight", {h, h}, {"pooler.dense.weight"});
      vector("pooler.bias", {h}, {"pooler.dense.bias"});
    }
    if (parts.output)
      add(entries, "output.weight", {config.vocabulary_size, h}, {"lm_head.weight"});
  }
};

}  // namespace

std::vector<ImageEntry> image_layout(const ModelConfig& config, const ImageParts& parts,
                                     bool matrices_only) {
  LayoutWriter writer{config, family_of(config.family), matrices_only, {}};
  writer.embeddings();
  for (int layer = 0; layer < config.num_layers; ++layer) writer.layer(layer);
  writer.top(parts);
  return std::move(writer.entries);
}

Result<> check_weights(const ModelFiles& model) {
  const Family& family = family_of(model.config.family);
  YMIR_TRY_ASSIGN(const ModelWeights weights, ModelWeights::open(model.folder));
  YMIR_TRY_ASSIGN(const Sources sources, sources_of(family, weights, place_of(model)));
  const ImageParts parts = parts_of(model.config, family, sources);
  return check_sources(sources, image_layout(model.config, parts, false), place_of(model));
}

Result<BackboneImage> BackboneImage::open(const ModelFiles& model, const std::string& cache,
                                          bool with_bf16) {
  const Family& family = family_of(model.config.family);
  YMIR_TRY_ASSIGN(const ModelWeights weights, ModelWeights::open(model.folder));
  YMIR_TRY_ASSIGN(const Sources sources, sources_of(family, weights, place_of(model)));
  BackboneImage image;
  const ImageParts parts = parts_of(model.config, family, sources);
  const std::string folder = cache + "/images";
  YMIR_TRY(make_folders(folder));
  const std::string stem = fmt::format("{}/{}-v{}", folder, model.key.substr(0, 32), kVersion);
  const std::string path32 = stem + ".f32.safetensors", path16 = stem + ".bf16.safetensors";
  const auto missing = [&] {
    return !std::filesystem::exists(path32) || (with_bf16 && !std::filesystem::exists(path16));
  };
  if (missing()) {
    YMIR_TRY_ASSIGN(const FileLock lock, FileLock::acquire(stem + ".lock"));
    if (missing()) YMIR_TRY(build(model, parts, sources, path32, path16, with_bf16));
  }
  image.entries_ = image_layout(model.config, parts, false);
  YMIR_TRY_ASSIGN(SafetensorsFile file32, map_image(path32, DType::kF32, total_of(image.entries_)));
  image.f32_.push_back(std::move(file32));
  if (with_bf16) {
    image.entries16_ = image_layout(model.config, parts, true);
    YMIR_TRY_ASSIGN(SafetensorsFile file16,
                    map_image(path16, DType::kBF16, total_of(image.entries16_)));
    image.bf16_.push_back(std::move(file16));
  }
  image.path_ = path32;
  return image;
}

const float* BackboneImage::f32(const ImageEntry& entry) const {
  return reinterpret_cast<const float*>(f32_.front().find("weights")->bytes.data()) + entry.offset;
}

const std::uint16_t* BackboneImage::bf16(const ImageEntry& entry) const {
  return reinterpret_cast<const std::uint16_t*>(bf16_.front().find("weights")->bytes.data()) +
         entry.offset;
}

}  // namespace ymir
