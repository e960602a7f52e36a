// Every family against transformers, every method of PEFT's against PEFT: logits, losses and the
// gradient of every tensor by autograd, from tests/reference/model_values.json (made by
// make_model_reference.py beside it). Weights are not stored: both sides make them from uniform().
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/tune/checkpoint/half.h"
#include "ymir/tune/checkpoint/peft_files.h"
#include "ymir/tune/merge.h"
#include "ymir/tune/model/backbone_torch.h"
#include "ymir/tune/model/plain_torch.h"
#include "ymir/tune/trainer/export_torch.h"
#include "ymir/tune/trainer/task_torch.h"
#include "ymir/tune/trainer/tiny_job.h"

namespace ymir {
namespace {

// 24-bit uniform numbers in [-1, 1) from a mixing of (tensor, position).
std::vector<double> uniform(std::uint64_t tensor, std::size_t count) {
  std::vector<double> out;
  for (std::uint64_t k = 1; k <= count; ++k) {
    std::uint64_t z = ((tensor << 32) + k) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    out.push_back(static_cast<double>(z >> 40) * 0x1p-23 - 1);
  }
  return out;
}

struct Tensors {
  std::map<std::string, std::vector<float>> values{};
  std::map<std::string, std::vector<std::uint16_t>> halves{};
  TensorMap map{};
};

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

std::vector<float> formula(const std::string& name, std::uint64_t tensor, const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  std::vector<float> out;
  for (const double u : uniform(tensor, count)) {
    const bool gain =
        (shape.size() == 1 && name.ends_with("weight")) || has(name, "lora_magnitude");
    const double value = gain                 ? 1 + 0.2 * u
                         : shape.size() == 1  ? 0.1 * u
                         : has(name, "embed") ? 0.8 * u
                                              : 0.25 * u;
    out.push_back(static_cast<float>(value));
  }
  return out;
}

Tensors by_formula(const Json& shapes, const std::string& dtype) {
  Tensors out;
  std::uint64_t tensor = 0;
  for (const auto& [name, shape] : shapes.items()) {  // in the order of names
    const Shape sizes = shape.get<Shape>();
    auto& values = out.values[name] = formula(name, tensor++, sizes);
    if (dtype == "float32") {
      out.map[name] = view_of(values, sizes);
      continue;
    }
    auto& halves = out.halves[name];
    for (const float value : values)
      halves.push_back(dtype == "float16" ? f16_bits(value) : bf16_bits(value));
    out.map[name] = {dtype == "float16" ? DType::kF16 : DType::kBF16, sizes,
                     std::as_bytes(std::span(halves))};
  }
  return out;
}

// Half precision stands in two shards with an index, f32 in one file.
void write_weights(const std::string& folder, const Tensors& tensors) {
  if (tensors.halves.empty()) {
    ASSERT_TRUE(write_safetensors(folder + "/model.safetensors", tensors.map));
    return;
  }
  std::array<TensorMap, 2> shards;
  Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
  for (const auto& [name, view] : tensors.map) {
    const std::size_t shard = shards[0].size() * 2 < tensors.map.size() ? 0 : 1;
    shards[shard][name] = view;
    index["weight_map"][name] = "model-" + std::to_string(shard) + ".safetensors";
  }
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(
        write_safetensors(folder + "/model-" + std::to_string(i) + ".safetensors", shards[i]));
  ASSERT_TRUE(write_file(folder + "/model.safetensors.index.json", index.dump()));
}

const Json& reference() {
  static const Json values = [] {
    const auto text = read_file(YMIR_SOURCE_DIR "/tests/reference/model_values.json");
    YMIR_CHECK(static_cast<bool>(text), "the reference values are in the repository");
    return Json::parse(*text);
  }();
  return values;
}

class EveryFamily : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    at::set_num_threads(2);
    given = reference()["cases"][GetParam()];
    const std::string folder = at.path("model");
    ASSERT_TRUE(make_folders(folder));
    ASSERT_TRUE(write_file(folder + "/config.json", given["config"].dump()));
    write_weights(folder, by_formula(given["tensors"], given.value("dtype", "float32")));
    ModelFiles files;
    files.folder = folder;
    const auto config = parse_model_config(given["config"].dump());
    ASSERT_TRUE(config) << config.error().message;
    files.config = *config;
    files.key = given["name"].get<std::string>() + std::string(64, 'x');
    auto opened = open_backbone(files, at.path("cache"), true);
    ASSERT_TRUE(opened) << opened.error().message;
    backbone = *std::move(opened);
  }

  TaskKind kind() const {
    return given["task"] == "lm" ? TaskKind::kLanguageModel : TaskKind::kClassify;
  }

  Batch batch(std::size_t first, std::size_t count) const {
    Batch out;
    const ModelConfig& config = backbone->files.config;
    if (config.is_image())
      out.input.pixels = at::empty({static_cast<std::int64_t>(count), config.num_channels,
                                    config.image_size, config.image_size},
                                   at::kFloat);
    for (std::size_t row = first; row < first + count; ++row) {
      out.rows.push_back(static_cast<std::uint32_t>(row));
      out.classes.push_back(static_cast<std::int32_t>(row % 3));
      if (config.is_image()) {
        at::Tensor image = out.input.pixels.select(0, static_cast<std::int64_t>(row - first));
        const auto values = uniform(2000 + row, static_cast<std::size_t>(image.numel()));
        std::copy(values.begin(), values.end(), image.mutable_data_ptr<float>());
        out.input.layout.offsets.push_back(out.input.layout.offsets.back() + config.max_positions);
        continue;
      }
      const auto ids = given["ids"][row].get<std::vector<std::int32_t>>();
      out.input.ids.insert(out.input.ids.end(), ids.begin(), ids.end());
      out.input.layout.offsets.push_back(static_cast<std::int64_t>(out.input.ids.size()));
      if (kind() != TaskKind::kLanguageModel) continue;
      for (std::size_t t = 0; t < ids.size(); ++t)
        out.learn.push_back(t < given["prompt"][row].get<std::size_t>() ? 0 : 1);
    }
    return out;
  }
  std::size_t rows() const { return given["rows"].get<std::size_t>(); }

  Task task_of(const MethodSpec& method) const {
    Task task;
    task.setup.kind = kind();
    task.setup.outputs = 3;
    const auto plan = make_adapter(backbone->encoder, method);
    EXPECT_TRUE(plan) << plan.error().message;
    task.setup.adapter = *plan;
    task.setup.head =
        kind() == TaskKind::kLanguageModel ? no_head() : make_head(backbone->encoder, 3);
    task.adapter = initial_adapter(task.setup.adapter, backbone->encoder, 1);
    task.head = task.setup.head.layout.zeros();
    const Tensors tensors = by_formula(given["tensors"], "float32");
    const std::string dtype = given.value("dtype", "float32");
    for (std::size_t i = 0; i < task.setup.head.layout.infos().size(); ++i) {
      const std::string name = task.setup.head.layout.infos()[i].name.substr(17);
      const auto& values = tensors.values.at(name);
      at::Tensor to = task.setup.head.layout.view(task.head, i);
      std::copy(values.begin(), values.end(), to.mutable_data_ptr<float>());
      if (dtype == "float16") to.copy_(to.to(at::kHalf).to(at::kFloat));
      if (dtype == "bfloat16") to.copy_(to.to(at::kBFloat16).to(at::kFloat));
    }
    return task;
  }

  double worst_logit(const TaskSetup& setup, const at::Tensor& adapter, const at::Tensor& head,
                     const Encoder& encoder, const Json& expected) const {
    const at::Tensor logits =
        logits_of(setup, adapter, head, encoder, batch(0, rows()).input).contiguous();
    const float* data = logits.const_data_ptr<float>();
    double worst = 0;
    std::size_t at_value = 0;
    for (const Json& row : expected)
      for (const Json& value : row)
        worst = std::max(worst, std::abs(data[at_value++] - value.get<double>()));
    EXPECT_EQ(at_value, static_cast<std::size_t>(logits.numel()));
    return worst;
  }

  // Norm and product with uniform(tensor + 500) of every gradient.
  void expect_gradients(const Json& expected, const ParameterLayout& layout, const at::Tensor& flat,
                        const std::string& prefix, std::size_t* found) const {
    std::map<std::string, std::uint64_t> numbers;
    for (const auto& [name, value] : expected.items()) numbers.emplace(name, numbers.size());
    for (std::size_t i = 0; i < layout.infos().size(); ++i) {
      const std::string name = layout.infos()[i].name.substr(prefix.size());
      ASSERT_TRUE(expected.contains(name)) << name;
      const ParameterInfo& info = layout.infos()[i];
      const float* g = flat.const_data_ptr<float>() + info.offset;
      const auto along = uniform(numbers[name] + 500, static_cast<std::size_t>(info.count));
      double square = 0, product = 0;
      for (std::size_t k = 0; k < along.size(); ++k) {
        square += static_cast<double>(g[k]) * g[k];
        product += g[k] * along[k];
      }
      const double norm = expected[name][0].get<double>();
      EXPECT_NEAR(std::sqrt(square), norm, 1e-4 * norm + 1e-6) << name;
      EXPECT_NEAR(product, expected[name][1].get<double>(), 1e-4 * norm + 1e-6) << name;
      ++*found;
    }
  }

  void expect_autograd(const Encoder& encoder) const {
    MethodSpec full;
    full.kind = "full";
    Task task = task_of(full);
    task.adapter = task.adapter.to(device_of(encoder));
    task.head = task.head.to(device_of(encoder));

    const TaskGradient gradient = gradient_of(task, encoder, batch(0, rows()), 0);

    EXPECT_LT(worst_logit(task.setup, task.adapter, task.head, encoder, given["logits"]), 1e-4);
    EXPECT_NEAR(gradient.loss_sum / static_cast<double>(gradient.labels),
                given["loss"].get<double>(), 1e-5);
    std::size_t found = 0;
    expect_gradients(given["gradients"], task.setup.adapter.layout, gradient.adapter.cpu(),
                     "base_model.model.", &found);
    expect_gradients(given["gradients"], task.setup.head.layout, gradient.head.cpu(),
                     "base_model.model.", &found);
    EXPECT_EQ(found, given["gradients"].size());
  }

  // PEFT -> Ymir -> PEFT: equal tensors, equal settings. With YMIR_EXPORT_TO the folders stay for
  // PEFT itself to read (make_model_reference.py).
  void expect_round_trip(const Task& task, const std::string& theirs, int number) const {
    const char* outside = std::getenv("YMIR_EXPORT_TO");
    ExportRequest request;
    request.folder = (outside != nullptr ? std::string(outside) : at.path("exported")) + "/" +
                     given["name"].get<std::string>() + "-" + std::to_string(number);
    request.spec.model = "base";
    request.adapter = task.adapter;
    request.head = task.head;
    const auto exported = export_adapter(request, task.setup, backbone->encoder, {});
    ASSERT_TRUE(exported) << exported.error().message;
    const auto before = read_adapter(theirs), after = read_adapter(request.folder);
    ASSERT_TRUE(before && after);
    EXPECT_EQ(after->tensors, before->tensors);
    EXPECT_EQ(after->config.rank_pattern, before->config.rank_pattern);
    EXPECT_EQ(after->config.alpha_pattern, before->config.alpha_pattern);
    EXPECT_EQ(after->config.scale(), before->config.scale());
    EXPECT_EQ(after->config.magnitude, before->config.magnitude);
  }

  // MergedEqualsUnmerged: the backbone with the adapter inside gives the logits without one.
  void expect_merged(const Task& task, const std::string& adapter, const Json& logits) {
    const std::string merged = at.path("merged");
    const auto done = merge_adapter({at.path("model"), adapter, merged});
    if (task.setup.adapter.method.kind == "prefix") {
      EXPECT_FALSE(done);
      return;
    }
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->num_changed, static_cast<int>(task.setup.adapter.lora.size()));
    ModelFiles files = backbone->files;
    files.folder = merged;
    files.key = "merged" + std::string(64, 'x');
    const auto opened = open_backbone(files, at.path("merged_cache"), false);
    ASSERT_TRUE(opened) << opened.error().message;
    Task plain = task;
    plain.setup.adapter = AdapterPlan{.layers = task.setup.adapter.layers};
    plain.adapter = plain.setup.adapter.layout.zeros();
    const bool half = given.contains("dtype");  // the merged weights are rounded to it
    EXPECT_LT(worst_logit(plain.setup, plain.adapter, plain.head, (*opened)->encoder, logits),
              half ? 0.1 : 1e-4);
    std::filesystem::remove_all(merged);
    std::filesystem::remove_all(at.path("merged_cache"));
  }

  const testing::Workspace at;
  Json given;
  std::unique_ptr<Backbone> backbone;
};

TEST_P(EveryFamily, LogitsEqualThoseOfTransformersAlsoInBf16) {
  MethodSpec full;
  full.kind = "full";
  const Task task = task_of(full);

  EXPECT_LT(worst_logit(task.setup, task.adapter, task.head, backbone->encoder, given["logits"]),
            1e-4);
  EXPECT_LT(worst_logit(task.setup, task.adapter, task.head, backbone->encoder16, given["logits"]),
            0.15);  // logits are about 1 to 4 here
}

TEST_P(EveryFamily, LossAndGradientOfEveryWeightEqualAutograd) {
  expect_autograd(backbone->encoder);
}

// The form that other devices take, on this one.
TEST_P(EveryFamily, PlainOperationsGiveTheSameAsTheKernels) {
  const ForcePlain plain;

  expect_autograd(backbone->encoder);
}

TEST_P(EveryFamily, AGpuGivesTheSameLogitsAndGradients) {
  const auto device = find_device("cuda");
  if (!device) GTEST_SKIP() << device.error().message;
  auto opened = open_backbone(backbone->files, at.path("cache"), false, *device);
  ASSERT_TRUE(opened) << opened.error().message;

  expect_autograd((*opened)->encoder);
}

TEST_P(EveryFamily, SharesOfABatchGiveTheGradientOfTheWhole) {  // accumulation k x m = batch k * m
  MethodSpec full;
  full.kind = "full";
  const Task task = task_of(full);

  const TaskGradient whole = gradient_of(task, backbone->encoder, batch(0, rows()), 0);
  const TaskGradient shares = gradient_of(task, backbone->encoder, batch(0, rows()), 0, 1);

  EXPECT_NEAR(shares.loss_sum, whole.loss_sum, 1e-5 * std::abs(whole.loss_sum));
  EXPECT_LT(at::linalg_vector_norm(shares.adapter - whole.adapter).item<double>(),
            1e-5 * whole.norm);
  EXPECT_EQ(shares.labels, whole.labels);
}

TEST_P(EveryFamily, PaddingDoesNotChangeLogits) {  // a row alone, and among batch mates
  MethodSpec full;
  full.kind = "full";
  const Task task = task_of(full);

  for (std::size_t row = 0; row < rows(); ++row) {
    const at::Tensor logits =
        logits_of(task.setup, task.adapter, task.head, backbone->encoder, batch(row, 1).input)
            .contiguous();
    for (std::int64_t i = 0; i < logits.numel(); ++i)
      EXPECT_NEAR(logits.const_data_ptr<float>()[i],
                  given["logits"][row][static_cast<std::size_t>(i)].get<double>(), 1e-4);
  }
}

TEST_P(EveryFamily, AdaptersOfPeftAreReadAndGiveItsLogitsAndGradients) {
  if (given["adapters"].empty()) GTEST_SKIP() << "no adapter of PEFT's for " << given["name"];
  int number = 0;
  for (const Json& expected : given["adapters"]) {
    const std::string folder = at.path("adapter");
    ASSERT_TRUE(make_folders(folder));
    const Tensors tensors = by_formula(expected["tensors"], "float32");
    ASSERT_TRUE(write_file(folder + "/adapter_config.json", expected["config"].dump()));
    ASSERT_TRUE(write_safetensors(folder + "/adapter_model.safetensors", tensors.map));

    const auto loaded = load_adapter(folder, backbone->encoder);

    ASSERT_TRUE(loaded) << loaded.error().message;
    Task task = task_of(loaded->setup.adapter.method);
    task.setup.adapter = loaded->setup.adapter;
    task.adapter = loaded->adapter;
    if (kind() != TaskKind::kLanguageModel) task.head = loaded->head;
    EXPECT_LT(
        worst_logit(task.setup, task.adapter, task.head, backbone->encoder, expected["logits"]),
        1e-4);
    const TaskGradient gradient = gradient_of(task, backbone->encoder, batch(0, rows()), 0);
    std::size_t found = 0;
    const Family& family = family_of(backbone->encoder.shape.family);
    for (auto* layout : {&task.setup.adapter.layout, &task.setup.head.layout}) {
      ParameterLayout current;
      for (const ParameterInfo& info : layout->infos())
        current.add(family.current_name(info.name), info.shape);
      expect_gradients(expected["gradients"], current,
                       layout == &task.setup.adapter.layout ? gradient.adapter : gradient.head, "",
                       &found);
    }
    EXPECT_EQ(found, expected["gradients"].size());
    expect_merged(task, folder, expected["logits"]);
    expect_round_trip(task, folder, number++);
    std::filesystem::remove_all(folder);
  }
}

std::vector<std::size_t> all_cases() {
  std::vector<std::size_t> cases;
  for (std::size_t i = 0; i < reference()["cases"].size(); ++i) cases.push_back(i);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    Reference, EveryFamily, ::testing::ValuesIn(all_cases()), [](const auto& each) {
      return reference()["cases"][each.param]["name"].template get<std::string>();
    });

}  // namespace
}  // namespace ymir
