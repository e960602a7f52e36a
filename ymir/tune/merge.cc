#include "ymir/tune/merge.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/tune/checkpoint/half.h"
#include "ymir/tune/checkpoint/peft_files.h"
#include "ymir/tune/model/family.h"
#include "ymir/tune/model_files.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::size_t kMaxConfig = 4u << 20;

using Values = std::vector<float>;

struct Merge {
  const Family& family;
  const Adapter& adapter;
  std::map<std::string, TensorView> given{};  // the adapter's, in the family's words, no prefix
  std::set<std::string> used{};
  int num_changed = 0;

  const TensorView* take(const std::string& name) {
    const auto found = given.find(name);
    if (found == given.end()) return nullptr;
    used.insert(name);
    return &found->second;
  }
  Result<> lora(const std::string& module, const Shape& shape, Values& weight);
  // Applies whatever the adapter has for a tensor of the backbone.
  Result<> apply(const std::string& plain, const Shape& shape, Values& values);
};

Result<> Merge::lora(const std::string& module, const Shape& shape, Values& weight) {
  const TensorView *a = take(module + ".lora_A.weight"), *b = take(module + ".lora_B.weight");
  if (a == nullptr || b == nullptr) return Ok{};
  if (shape.size() != 2 || weight.empty())
    return Error{ErrorCode::kConflict, fmt::format("LoRA of {}, whose weight is no matrix but {}",
                                                   module, shape_text(shape))};
  const auto out = static_cast<std::size_t>(shape.front()), in = weight.size() / out;
  const auto rank = static_cast<std::size_t>(a->shape[0]);
  if (a->shape != Shape{a->shape[0], static_cast<std::int64_t>(in)} ||
      b->shape != Shape{shape.front(), a->shape[0]})
    return Error{ErrorCode::kConflict,
                 fmt::format("LoRA of {} is {} and {}, the weight {}", module, shape_text(a->shape),
                             shape_text(b->shape), shape_text(shape))};
  double alpha = adapter.config.alpha;
  for (const auto& [pattern, value] : adapter.config.alpha_pattern) {
    const std::string plain = family.plain_module(pattern);
    if (module == plain || module.ends_with("." + plain)) {
      alpha = value;
      break;
    }
  }
  const auto r = static_cast<double>(rank);
  const double scale = alpha / (adapter.config.rank_stabilised ? std::sqrt(r) : r);
  YMIR_TRY_ASSIGN(const Values low, to_f32(*a));
  YMIR_TRY_ASSIGN(const Values high, to_f32(*b));
  Values magnitude;
  if (const TensorView* m = take(module + ".lora_magnitude_vector")) {
    YMIR_TRY_ASSIGN(magnitude, to_f32(*m));
    if (magnitude.size() != out)
      return Error{ErrorCode::kConflict, "magnitudes of another size: " + module};
  }
  std::vector<double> row(in);
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t i = 0; i < in; ++i) row[i] = weight[o * in + i];
    for (std::size_t k = 0; k < rank; ++k) {
      const double factor = scale * high[o * rank + k];
      for (std::size_t i = 0; i < in; ++i) row[i] += factor * low[k * in + i];
    }
    double stretch = 1;
    if (!magnitude.empty()) {
      double square = 0;
      for (const double value : row) square += value * value;
      stretch = magnitude[o] / std::sqrt(square);
    }
    for (std::size_t i = 0; i < in; ++i) weight[o * in + i] = static_cast<float>(row[i] * stretch);
  }
  ++num_changed;
  return Ok{};
}

Result<> Merge::apply(const std::string& plain, const Shape& shape, Values& values) {
  if (const TensorView* whole = take(plain)) {
    if (whole->shape != shape)
      return Error{ErrorCode::kConflict,
                   fmt::format("{} is {} in the adapter, {} in the model", plain,
                               shape_text(whole->shape), shape_text(shape))};
    YMIR_TRY_ASSIGN(values, to_f32(*whole));
    ++num_changed;
    return Ok{};
  }
  if (!plain.ends_with(".weight")) return Ok{};
  return lora(plain.substr(0, plain.size() - std::string_view(".weight").size()), shape, values);
}

std::vector<std::byte> stored(const Values& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* to = bytes.data() + i * size_of(dtype);
    if (dtype == DType::kF64) {
      const double value = values[i];
      std::memcpy(to, &value, sizeof value);
    } else if (dtype == DType::kF32) {
      std::memcpy(to, &values[i], sizeof values[i]);
    } else {
      const std::uint16_t bits = dtype == DType::kF16 ? f16_bits(values[i]) : bf16_bits(values[i]);
      std::memcpy(to, &bits, sizeof bits);
    }
  }
  return bytes;
}

bool is_real(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

// What transformers needs to build the head: how many outputs it has (two, where nothing is said),
// what they are called and meant for, and the class.
void describe_head(const Family& family, const AdapterNotes& notes, std::size_t num_outputs,
                   Json& config) {
  Json names = Json::object(), numbers = Json::object();
  for (std::size_t i = 0; i < num_outputs; ++i) {
    const std::string name =
        notes.labels.size() == num_outputs ? notes.labels[i] : fmt::format("LABEL_{}", i);
    names[std::to_string(i)] = name;
    numbers[name] = i;
  }
  config["id2label"] = names;
  config["label2id"] = numbers;
  config["num_labels"] = num_outputs;
  for (const auto& [kind, type] : {std::pair{"classify", "single_label_classification"},
                                   {"multi_label", "multi_label_classification"},
                                   {"regress", "regression"}})
    if (notes.task_kind == kind) config["problem_type"] = type;
  for (const auto& [name, type] : {std::pair{"bert", "BertForSequenceClassification"},
                                   {"roberta", "RobertaForSequenceClassification"},
                                   {"distilbert", "DistilBertForSequenceClassification"},
                                   {"vit", "ViTForImageClassification"},
                                   {"llama", "LlamaForSequenceClassification"}})
    if (family.name == name) config["architectures"] = {type};
}

Result<> write_config(const MergeRequest& request, const Family& family, const Adapter& adapter,
                      const std::string& fresh) {
  const auto head = adapter.tensors.find(saved_name(family.classifier, "weight"));
  if (head != adapter.tensors.end() && head->second.shape.size() != 2)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: {} is no matrix but {}", request.adapter, head->first,
                             shape_text(head->second.shape))};
  const std::size_t num_outputs =
      head == adapter.tensors.end() ? 0 : static_cast<std::size_t>(head->second.shape.front());
  YMIR_TRY_ASSIGN(const std::string text, read_file(request.model + "/config.json", kMaxConfig));
  YMIR_TRY_ASSIGN(Json config, parse_json(text, {.max_bytes = kMaxConfig, .max_depth = 16}));
  if (num_outputs > 0) describe_head(family, adapter.notes, num_outputs, config);
  if (adapter.notes.max_length > 0) config["ymir_max_length"] = adapter.notes.max_length;
  if (!adapter.notes.prompt_template.empty())
    config["ymir_template"] = adapter.notes.prompt_template;
  return write_file(fresh + "/config.json", config.dump(2) + "\n");
}

// Everything else of the folder that is not weights: tokenizer and processor.
Result<> copy_rest(const MergeRequest& request, const std::string& fresh) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(request.model, error)) {
    const std::string name = entry.path().filename();
    const bool text = name.ends_with(".json") || name.ends_with(".txt") || name.ends_with(".model");
    if (!entry.is_regular_file() || !text || name == "config.json" || name.ends_with(".index.json"))
      continue;
    fs::copy_file(entry.path(), fs::path(fresh) / name, error);
    if (error) return Error{ErrorCode::kUnavailable, name + ": " + error.message()};
  }
  return Ok{};
}

// The backbone's tensors under the family's prefix, the head's under their own names.
struct Output {
  std::vector<std::vector<std::byte>> storage{};
  TensorMap tensors{};
  void add(const std::string& name, const TensorView& like, const Values& values) {
    storage.push_back(stored(values, like.dtype));
    tensors[name] = {like.dtype, like.shape, storage.back()};
  }
};

Result<> merge_backbone(Merge& merge, const ModelWeights& weights, Output& output) {
  const Family& family = merge.family;
  output.storage.reserve(weights.tensors().size() + merge.given.size());  // views stay
  for (const auto& [name, view] : weights.tensors()) {
    const std::string plain = family.plain_name(name);
    if (family.ignores(plain)) continue;
    const bool outside = plain.starts_with("lm_head.");
    const std::string full = outside ? plain : std::string(family.prefix) + plain;
    if (!is_real(view.dtype)) {
      output.tensors[full] = view;
      continue;
    }
    YMIR_TRY_ASSIGN(Values values, to_f32(view));
    const int before = merge.num_changed;
    YMIR_TRY(merge.apply(plain, view.shape, values));
    if (merge.num_changed == before) {
      output.tensors[full] = view;
    } else {
      output.add(full, view, values);
    }
  }
  return Ok{};
}

// The folder appears as a whole, or not at all.
Result<> write_output(const MergeRequest& request, const Family& family, const Adapter& adapter,
                      const Output& output) {
  std::string base = request.output;
  while (base.size() > 1 && base.ends_with('/')) base.pop_back();
  const std::string fresh = fmt::format("{}.tmp{}", base, ::getpid());
  const auto written = [&]() -> Result<> {
    YMIR_TRY(make_folders(fresh));
    YMIR_TRY(write_config(request, family, adapter, fresh));
    YMIR_TRY(copy_rest(request, fresh));
    YMIR_TRY(write_safetensors(fresh + "/model.safetensors", output.tensors));
    return commit_folder(fresh, base);
  }();
  std::error_code ignored;
  if (!written) fs::remove_all(fresh, ignored);
  return written;
}

}  // namespace

Result<Merged> merge_adapter(const MergeRequest& request) {
  std::error_code error;
  if (fs::exists(request.output, error))
    return Error{ErrorCode::kConflict, "exists already: " + request.output};
  if (error) return file_error(request.output, "cannot be made", error.value());
  YMIR_TRY_ASSIGN(const std::string text, read_file(request.model + "/config.json", kMaxConfig));
  YMIR_TRY_ASSIGN(const ModelConfig config, parse_model_config(text));
  YMIR_TRY_ASSIGN(const Adapter adapter, read_adapter(request.adapter));
  if (adapter.config.kind == "bottleneck" || adapter.config.kind == "prefix")
    return Error{ErrorCode::kInvalidArgument,
                 adapter.config.kind + " adds parts to the model and can't be merged into it"};
  const Family& family = family_of(config.family);
  Merge merge{family, adapter, {}, {}, 0};
  for (const auto& [name, view] : adapter.tensors) {
    if (!name.starts_with(kPrefix))
      return Error{ErrorCode::kInvalidArgument, fmt::format("{}: tensor {} does not begin with {}",
                                                            request.adapter, name, kPrefix)};
    const std::string_view below = std::string_view(name).substr(kPrefix.size());
    merge.given[below.starts_with(family.prefix) ? family.plain_name(below) : std::string(below)] =
        view;
  }
  YMIR_TRY_ASSIGN(const ModelWeights weights, ModelWeights::open(request.model));
  Output output;
  YMIR_TRY(merge_backbone(merge, weights, output));
  for (const auto& [name, view] : merge.given) {
    if (merge.used.contains(name)) continue;
    const bool pooler = name.starts_with("pooler.");
    const bool head = pooler || name.starts_with(family.classifier) ||
                      (!family.head_dense.empty() && name.starts_with(family.head_dense));
    if (!head)
      return Error{ErrorCode::kConflict, "the model has no place for the adapter's " + name};
    YMIR_TRY_ASSIGN(const Values values, to_f32(view));
    output.add(pooler ? std::string(family.prefix) + name : name, view, values);
  }
  YMIR_TRY(write_output(request, family, adapter, output));
  return Merged{merge.num_changed};
}

}  // namespace ymir
