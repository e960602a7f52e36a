#include "ymir/tune/model/backbone_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <span>

#include "ymir/base/file.h"
#include "ymir/base/leftovers.h"
#include "ymir/tune/checkpoint/half.h"

namespace ymir {
namespace {

constexpr const char* kVersion = "3";    // of the layout; part of the file's name
constexpr std::int64_t kAlignment = 64;  // elements: 256 bytes in f32, 128 in bf16

std::int64_t count_of(const ImageEntry& entry) {
  std::int64_t count = 1;
  for (const std::int64_t size : entry.shape) count *= size;
  return count;
}

std::int64_t aligned(std::int64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

// Entries lie behind one another in the file of their type.
void set_offsets(std::vector<ImageEntry>& entries) {
  std::map<DType, std::int64_t> next;
  for (ImageEntry& entry : entries) {
    entry.offset = aligned(next[entry.dtype]);
    next[entry.dtype] = entry.offset + count_of(entry);
  }
}

// Elements of the file of that type; 0: there is none.
std::int64_t total_of(const std::vector<ImageEntry>& entries, DType dtype) {
  std::int64_t total = 0;
  for (const ImageEntry& entry : entries)
    if (entry.dtype == dtype) total = entry.offset + count_of(entry);
  return total;
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

// Matrices of many values: what decides the size of a model.
bool is_large(const ImageEntry& entry) {
  return entry.name == "words" || entry.name == "output.weight" ||
         (entry.name.starts_with("layer.") && entry.name.ends_with(".weight"));
}

// Gives large entries the type of the file where all their parts have it, then every entry its
// place.
void place_entries(std::vector<ImageEntry>& entries, const Sources& sources) {
  for (ImageEntry& entry : entries) {
    const DType dtype = sources.at(entry.sources.front()).dtype;
    const bool half = dtype == DType::kBF16 || dtype == DType::kF16;
    const bool same = std::ranges::all_of(
        entry.sources, [&](const std::string& name) { return sources.at(name).dtype == dtype; });
    if (half && same && is_large(entry)) entry.dtype = dtype;
  }
  set_offsets(entries);
}

// Elements [first, first + count) of a tensor.
TensorView slice_of(const TensorView& tensor, std::size_t first, std::size_t count) {
  const std::size_t size = size_of(tensor.dtype);
  return {tensor.dtype,
          {static_cast<std::int64_t>(count)},
          tensor.bytes.subspan(first * size, count * size)};
}

Result<> append_as(const TensorView& tensor, DType dtype, FlatTensorWriter& writer) {
  if (tensor.dtype == dtype) return writer.append(tensor.bytes);
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  for (std::size_t first = 0; first < tensor.count(); first += kPiece) {
    YMIR_TRY_ASSIGN(const std::vector<float> values,
                    to_f32(slice_of(tensor, first, std::min(kPiece, tensor.count() - first))));
    if (dtype == DType::kF32) {
      YMIR_TRY(writer.append(std::as_bytes(std::span(values))));
      continue;
    }
    YMIR_CHECK(dtype == DType::kBF16, "weights become f32 or bf16");
    std::vector<std::uint16_t> halves(values.size());
    std::transform(values.begin(), values.end(), halves.begin(), bf16_bits);
    YMIR_TRY(writer.append(std::as_bytes(std::span(halves))));
  }
  return Ok{};
}

// Writes the entries of one type.
Result<> write_image(const std::string& path, const std::vector<ImageEntry>& entries, DType dtype,
                     const Sources& sources, const ModelFiles& model) {
  if (std::error_code unknown; std::filesystem::exists(path, unknown)) return Ok{};
  YMIR_TRY_ASSIGN(FlatTensorWriter writer,
                  FlatTensorWriter::create(path, "weights", dtype, total_of(entries, dtype),
                                           {{"ymir_image", kVersion}, {"key", model.key}}));
  const std::size_t size = size_of(dtype);
  for (const ImageEntry& entry : entries) {
    if (entry.dtype != dtype) continue;
    YMIR_TRY(writer.append_zeros(static_cast<std::size_t>(entry.offset) * size -
                                 static_cast<std::size_t>(writer.written())));
    for (const std::string& name : entry.sources)
      YMIR_TRY(append_as(sources.at(name), dtype, writer));
  }
  return writer.commit();
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
  std::vector<ImageEntry> entries{};

  // `heights`: lines of each source where several are stacked.
  void add(const std::string& name, Shape shape, std::vector<std::string> sources,
           std::vector<std::int64_t> heights = {}) {
    ImageEntry entry;
    entry.name = name;
    entry.shape = std::move(shape);
    entry.sources = std::move(sources);
    entry.heights = std::move(heights);
    entries.push_back(std::move(entry));
  }
  void vector(const std::string& name, Shape shape, std::vector<std::string> sources) {
    add(name, std::move(shape), std::move(sources));
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
    add(name + ".weight", shape, weights, heights);
    if (biased) add(name + ".bias", {shape[0]}, biases, heights);
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
    if (parts.output) add("output.weight", {config.vocabulary_size, h}, {"lm_head.weight"});
  }
};

}  // namespace

std::vector<ImageEntry> image_layout(const ModelConfig& config, const ImageParts& parts) {
  LayoutWriter writer{config, family_of(config.family), {}};
  writer.embeddings();
  for (int layer = 0; layer < config.num_layers; ++layer) writer.layer(layer);
  writer.top(parts);
  set_offsets(writer.entries);
  return std::move(writer.entries);
}

namespace {

// The layers' matrices and the output layer that are not kept in bf16, as the copy has them.
std::vector<ImageEntry> copies_of(const std::vector<ImageEntry>& entries) {
  std::vector<ImageEntry> copies;
  for (const ImageEntry& entry : entries) {
    if (!is_large(entry) || entry.name == "words" || entry.dtype == DType::kBF16) continue;
    copies.push_back(entry);
    copies.back().dtype = DType::kBF16;
  }
  set_offsets(copies);
  return copies;
}

constexpr std::array<std::pair<DType, const char*>, 3> kFiles = {
    {{DType::kF32, "f32"}, {DType::kBF16, "bf16"}, {DType::kF16, "f16"}}};

}  // namespace

Result<> check_weights(const ModelFiles& model) {
  const Family& family = family_of(model.config.family);
  YMIR_TRY_ASSIGN(const ModelWeights weights, ModelWeights::open(model.folder));
  YMIR_TRY_ASSIGN(const Sources sources, sources_of(family, weights, place_of(model)));
  const ImageParts parts = parts_of(model.config, family, sources);
  return check_sources(sources, image_layout(model.config, parts), place_of(model));
}

Result<BackboneImage> BackboneImage::open(const ModelFiles& model, const std::string& cache,
                                          bool with_bf16) {
  const Family& family = family_of(model.config.family);
  YMIR_TRY_ASSIGN(const ModelWeights weights, ModelWeights::open(model.folder));
  YMIR_TRY_ASSIGN(const Sources sources, sources_of(family, weights, place_of(model)));
  BackboneImage image;
  image.entries_ = image_layout(model.config, parts_of(model.config, family, sources));
  YMIR_TRY(check_sources(sources, image.entries_, place_of(model)));
  place_entries(image.entries_, sources);
  if (with_bf16) image.copies16_ = copies_of(image.entries_);
  image.has_bf16_ = with_bf16;
  const std::string folder = cache + "/images";
  YMIR_TRY(make_folders(folder));
  const std::string stem = fmt::format("{}/{}-v{}", folder, model.key.substr(0, 32), kVersion);
  const auto write_and_map = [&](const std::string& path, const std::vector<ImageEntry>& entries,
                                 DType dtype) -> Result<SafetensorsFile> {
    if (std::error_code unknown; !std::filesystem::exists(path, unknown)) {
      YMIR_TRY_ASSIGN(const FileLock lock, FileLock::acquire(stem + ".lock"));
      remove_leftovers(folder, std::filesystem::path(path).filename().string());
      YMIR_TRY(write_image(path, entries, dtype, sources, model));
    }
    return map_image(path, dtype, total_of(entries, dtype));
  };
  for (const auto& [dtype, ending] : kFiles) {
    if (total_of(image.entries_, dtype) == 0) continue;
    const std::string path = fmt::format("{}.{}.safetensors", stem, ending);
    YMIR_TRY_ASSIGN(SafetensorsFile file, write_and_map(path, image.entries_, dtype));
    image.files_.emplace(dtype, std::move(file));
  }
  if (!image.copies16_.empty()) {
    YMIR_TRY_ASSIGN(SafetensorsFile file,
                    write_and_map(stem + ".copy16.safetensors", image.copies16_, DType::kBF16));
    image.copy_.push_back(std::move(file));
  }
  image.path_ = stem + ".f32.safetensors";
  return image;
}

const void* BackboneImage::data(const ImageEntry& entry) const {
  return files_.at(entry.dtype).find("weights")->bytes.data() +
         static_cast<std::size_t>(entry.offset) * size_of(entry.dtype);
}

const void* BackboneImage::copy16(const ImageEntry& entry) const {
  return copy_.front().find("weights")->bytes.data() +
         static_cast<std::size_t>(entry.offset) * size_of(entry.dtype);
}

}  // namespace ymir
