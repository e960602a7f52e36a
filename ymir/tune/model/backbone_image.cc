#include "ymir/tune/model/backbone_image.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>

#include "ymir/base/file.h"

namespace ymir {
namespace {

constexpr const char* kVersion = "1";    // of the layout; part of the file's name
constexpr std::int64_t kAlignment = 64;  // elements: 256 bytes in f32, 128 in bf16

void add(std::vector<ImageEntry>& entries, std::string name, Shape shape,
         std::vector<std::string> sources, bool optional = false) {
  ImageEntry entry{std::move(name), std::move(shape), 0, std::move(sources), optional};
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

// Files name the same weight in several ways; ours are BertModel's names without prefix.
std::string plain_name(const std::string& name) {
  std::string plain = name;
  for (const char* prefix : {"bert.", "model.bert."})
    if (plain.starts_with(prefix)) plain = plain.substr(std::strlen(prefix));
  for (const auto& [old_end, new_end] : {std::pair{".gamma", ".weight"}, {".beta", ".bias"}})
    if (plain.ends_with(old_end))
      plain = plain.substr(0, plain.size() - std::strlen(old_end)) + new_end;
  return plain;
}
bool ignored(const std::string& plain) {
  return plain.starts_with("cls.") || plain.starts_with("classifier.") ||
         plain == "embeddings.position_ids";
}

using Sources = std::map<std::string, TensorView>;

Result<Sources> sources_of(const ModelWeights& weights, const std::string& folder) {
  Sources sources;
  for (const auto& [name, view] : weights.tensors()) {
    const std::string plain = plain_name(name);
    if (ignored(plain)) continue;
    if (!sources.emplace(plain, view).second)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: two tensors mean {}: {}", folder, plain, name)};
  }
  return sources;
}

Result<> check_all_used(const Sources& sources, const std::vector<ImageEntry>& entries,
                        const std::string& folder) {
  std::set<std::string> used;
  for (const ImageEntry& entry : entries) used.insert(entry.sources.begin(), entry.sources.end());
  for (const auto& [name, view] : sources)
    if (!used.contains(name))
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{}: tensor belongs to no part of a BERT encoder: {}", folder, name)};
  return Ok{};
}

Result<> copy_entry(const Sources& sources, const ImageEntry& entry, const std::string& folder,
                    std::span<float> image) {
  std::int64_t at = entry.offset;
  const auto parts = static_cast<std::int64_t>(entry.sources.size());
  Shape part_shape = entry.shape;
  part_shape[0] /= parts;
  for (const std::string& name : entry.sources) {
    const auto found = sources.find(name);
    if (found == sources.end())
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: tensor is missing: {}", folder, name)};
    if (found->second.shape != part_shape)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: {} is {}, config.json says {}", folder, name,
                               shape_text(found->second.shape), shape_text(part_shape))};
    YMIR_TRY_ASSIGN(const std::vector<float> values, to_f32(found->second));
    std::memcpy(image.data() + at, values.data(), values.size() * sizeof(float));
    at += static_cast<std::int64_t>(values.size());
  }
  return Ok{};
}

// Round to nearest even; NaN stays NaN.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

Result<> write_image(const std::string& path, DType dtype, std::int64_t count,
                     std::span<const std::byte> bytes, const std::string& key) {
  return write_safetensors(path, {{"weights", TensorView{dtype, {count}, bytes}}},
                           {{"ymir_image", kVersion}, {"key", key}});
}

Result<> build(const ModelFiles& model, bool has_pooler, const Sources& sources,
               const std::string& path32, const std::string& path16, bool with_bf16) {
  const auto entries = image_layout(model.config, has_pooler, false);
  YMIR_TRY(check_all_used(sources, entries, model.folder));
  std::vector<float> image(static_cast<std::size_t>(total_of(entries)));
  for (const ImageEntry& entry : entries) YMIR_TRY(copy_entry(sources, entry, model.folder, image));
  if (!std::filesystem::exists(path32))
    YMIR_TRY(write_image(path32, DType::kF32, total_of(entries), std::as_bytes(std::span(image)),
                         model.key));
  if (!with_bf16 || std::filesystem::exists(path16)) return Ok{};
  const auto entries16 = image_layout(model.config, has_pooler, true);
  std::vector<std::uint16_t> image16(static_cast<std::size_t>(total_of(entries16)));
  std::map<std::string, std::int64_t> offsets;
  for (const ImageEntry& entry : entries) offsets[entry.name] = entry.offset;
  for (const ImageEntry& entry : entries16)
    for (std::int64_t i = 0; i < count_of(entry); ++i)
      image16[static_cast<std::size_t>(entry.offset + i)] =
          to_bf16(image[static_cast<std::size_t>(offsets.at(entry.name) + i)]);
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

}  // namespace

std::vector<ImageEntry> image_layout(const ModelConfig& config, bool with_pooler,
                                     bool matrices_only) {
  const std::int64_t h = config.hidden_size, f = config.intermediate_size;
  std::vector<ImageEntry> entries;
  if (!matrices_only) {
    const std::string e = "embeddings.";
    add(entries, "words", {config.vocabulary_size, h}, {e + "word_embeddings.weight"});
    add(entries, "positions", {config.max_positions, h}, {e + "position_embeddings.weight"});
    add(entries, "token_types", {config.num_token_types, h}, {e + "token_type_embeddings.weight"});
    add(entries, "embedding_norm.gain", {h}, {e + "LayerNorm.weight"});
    add(entries, "embedding_norm.bias", {h}, {e + "LayerNorm.bias"});
  }
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const std::string to = fmt::format("layer.{}.", layer), from = "encoder." + to;
    const auto linear = [&](const std::string& name, Shape shape,
                            const std::vector<std::string>& modules) {
      std::vector<std::string> weights, biases;
      for (const std::string& module : modules) {
        weights.push_back(from + module + ".weight");
        biases.push_back(from + module + ".bias");
      }
      add(entries, to + name + ".weight", shape, weights);
      if (!matrices_only) add(entries, to + name + ".bias", {shape[0]}, biases);
    };
    const auto norm = [&](const std::string& name, const std::string& module) {
      if (matrices_only) return;
      add(entries, to + name + ".gain", {h}, {from + module + ".weight"});
      add(entries, to + name + ".bias", {h}, {from + module + ".bias"});
    };
    linear("qkv", {3 * h, h},
           {"attention.self.query", "attention.self.key", "attention.self.value"});
    linear("attention_out", {h, h}, {"attention.output.dense"});
    norm("attention_norm", "attention.output.LayerNorm");
    linear("ffn_in", {f, h}, {"intermediate.dense"});
    linear("ffn_out", {h, f}, {"output.dense"});
    norm("ffn_norm", "output.LayerNorm");
  }
  if (with_pooler && !matrices_only) {
    add(entries, "pooler.weight", {h, h}, {"pooler.dense.weight"}, true);
    add(entries, "pooler.bias", {h}, {"pooler.dense.bias"}, true);
  }
  return entries;
}

Result<BackboneImage> BackboneImage::open(const ModelFiles& model, const std::string& cache,
                                          bool with_bf16) {
  YMIR_TRY_ASSIGN(const ModelWeights weights, ModelWeights::open(model.folder));
  YMIR_TRY_ASSIGN(const Sources sources, sources_of(weights, model.folder));
  BackboneImage image;
  image.has_pooler_ =
      sources.contains("pooler.dense.weight") && sources.contains("pooler.dense.bias");
  const std::string folder = cache + "/images";
  YMIR_TRY(make_folders(folder));
  const std::string stem = fmt::format("{}/{}-v{}", folder, model.key.substr(0, 32), kVersion);
  const std::string path32 = stem + ".f32.safetensors", path16 = stem + ".bf16.safetensors";
  const auto missing = [&] {
    return !std::filesystem::exists(path32) || (with_bf16 && !std::filesystem::exists(path16));
  };
  if (missing()) {
    YMIR_TRY_ASSIGN(const FileLock lock, FileLock::acquire(stem + ".lock"));
    if (missing()) YMIR_TRY(build(model, image.has_pooler_, sources, path32, path16, with_bf16));
  }
  image.entries_ = image_layout(model.config, image.has_pooler_, false);
  YMIR_TRY_ASSIGN(SafetensorsFile file32, map_image(path32, DType::kF32, total_of(image.entries_)));
  image.f32_.push_back(std::move(file32));
  if (with_bf16) {
    image.entries16_ = image_layout(model.config, image.has_pooler_, true);
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
