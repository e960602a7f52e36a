// Against transformers and PEFT on the real MiniLM: values of tests/reference/bert_values.json,
// made by make_bert_reference.py beside it. Skipped when the model has not been fetched.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/tune/model/backbone_torch.h"
#include "ymir/tune/trainer/export_torch.h"
#include "ymir/tune/trainer/task_torch.h"
#include "ymir/tune/trainer/tiny_job.h"

namespace ymir {
namespace {

std::string minilm_folder() {
  if (const char* given = std::getenv("YMIR_MINILM")) return given;
  const char* cache = std::getenv("YMIR_CACHE");
  const char* home = std::getenv("HOME");
  const std::string base =
      cache != nullptr ? cache : std::string(home != nullptr ? home : "") + "/.cache/ymir";
  for (const char* name : {"/minilm", "/models/minilm"})
    if (std::filesystem::exists(base + name + "/model.safetensors")) return base + name;
  return {};
}

void fill_by_formula(at::Tensor to, double scale, double phase) {
  float* data = to.mutable_data_ptr<float>();
  for (std::int64_t k = 0; k < to.numel(); ++k)
    data[k] = static_cast<float>(scale * std::sin(0.37 * static_cast<double>(k) + phase));
}

class Reference : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    const std::string folder = minilm_folder();
    if (folder.empty()) GTEST_SKIP() << "no MiniLM: ymir fetch minilm --out ~/.cache/ymir/minilm";
    const auto text = read_file(YMIR_SOURCE_DIR "/tests/reference/bert_values.json");
    ASSERT_TRUE(text);
    values = Json::parse(*text);
    const auto tokenizer = Tokenizer::load(folder);
    ASSERT_TRUE(tokenizer);
    const auto files = read_model_files(folder, &*tokenizer, at.path("cache"));
    ASSERT_TRUE(files) << files.error().message;
    auto opened = open_backbone(*files, at.path("cache"), true);
    ASSERT_TRUE(opened) << opened.error().message;
    backbone = *std::move(opened);
    MethodSpec method;
    method.targets = {"query", "value"};
    task.setup.outputs = 2;
    task.setup.adapter = *make_adapter(backbone->encoder, method);
    task.setup.head = make_head(backbone->encoder, 2);
    task.setup.train.lr = 1e-3;
    task.setup.train.schedule = "constant";
    task.setup.schedule = *make_schedule(task.setup.train, 20);
    task.adapter = task.setup.adapter.layout.zeros();
    task.head = task.setup.head.layout.zeros();
    task.adapter_moments = zero_moments(task.setup.adapter.layout);
    task.head_moments = zero_moments(task.setup.head.layout);
    fill_by_formula(task.setup.head.layout.view(task.head, 0), 0.1, 1);
    fill_by_formula(task.setup.head.layout.view(task.head, 1), 0.1, 2);
  }

  void fill_adapter() {
    for (std::size_t i = 0; i < task.setup.adapter.layout.infos().size(); ++i)
      fill_by_formula(task.setup.adapter.layout.view(task.adapter, i), i % 2 == 0 ? 0.05 : 0.02,
                      static_cast<double>(i));
  }

  Batch batch(std::size_t first, std::size_t count) const {
    Batch out;
    for (std::size_t row = first; row < first + count; ++row) {
      for (const Json& id : values["ids"][row]) out.input.ids.push_back(id.get<std::int32_t>());
      out.input.layout.offsets.push_back(static_cast<std::int64_t>(out.input.ids.size()));
      out.rows.push_back(static_cast<std::uint32_t>(row));
      out.classes.push_back(static_cast<std::int32_t>(row % 2));
    }
    return out;
  }

  double worst_logit(const Encoder& encoder, const Json& expected) const {
    const at::NoGradGuard no_autograd;
    const std::size_t rows = values["ids"].size();
    const at::Tensor logits =
        logits_of(task.setup, task.adapter, task.head, encoder, batch(0, rows).input);
    const float* data = logits.const_data_ptr<float>();
    double worst = 0;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t c = 0; c < 2; ++c)
        worst = std::max(worst, std::abs(data[2 * row + c] - expected[row][c].get<double>()));
    return worst;
  }

  const testing::Workspace at;
  Json values;
  std::unique_ptr<Backbone> backbone;
  Task task;
};

TEST_F(Reference, BertEqualsTransformers) {
  ASSERT_GE(values["ids"].size(), 64u);

  EXPECT_LT(worst_logit(backbone->encoder, values["logits"]), 1e-4);
}

TEST_F(Reference, Bf16IsCloseToF32) {
  EXPECT_LT(worst_logit(backbone->encoder16, values["logits"]), 0.05);
}

TEST_F(Reference, GradientsOfTheFirstStepEqualThoseOfPeft) {
  fill_adapter();

  const TaskGradient gradient = gradient_of(task, backbone->encoder, batch(0, 8), 0);

  const auto expect = [&](const ParameterLayout& layout, const at::Tensor& flat) {
    for (std::size_t i = 0; i < layout.infos().size(); ++i) {
      const double expected = values["gradient_norms"][layout.infos()[i].name].get<double>();
      const at::Tensor part = layout.view(flat, i);
      const double norm =
          std::sqrt(kernels::sum_of_squares(part.const_data_ptr<float>(), part.numel()));
      EXPECT_NEAR(norm, expected, 1e-4 * expected + 1e-7) << layout.infos()[i].name;
    }
  };
  expect(task.setup.adapter.layout, gradient.adapter);
  expect(task.setup.head.layout, gradient.head);
}

TEST_F(Reference, LossTraceOfTwentyStepsEqualsPeft) {
  fill_adapter();

  for (std::size_t step = 0; step < 20; ++step) {
    TaskGradient gradient =
        gradient_of(task, backbone->encoder, batch(step * 8 % values["ids"].size(), 8), 0);
    update_task(task, gradient);

    EXPECT_NEAR(gradient.loss_sum / 8, values["losses"][step].get<double>(), 1e-3) << step;
  }
}

// PEFT has read the very file that is written here (its hash is committed) and computed logits.
TEST_F(Reference, PeftReadsOurExport) {
  fill_adapter();
  const char* outside = std::getenv("YMIR_EXPORT_TO");
  ExportRequest request;
  request.folder = outside != nullptr ? outside : at.path("adapter");
  request.spec.name = "reference";
  request.spec.model = "minilm";
  request.spec.method.targets = {"query", "value"};
  request.labels = {"negative", "positive"};
  request.adapter = task.adapter;
  request.head = task.head;

  const auto exported = export_adapter(request, task.setup, backbone->encoder, {});

  ASSERT_TRUE(exported) << exported.error().message;
  EXPECT_EQ(exported->hash, values["exported"]["sha256"].get<std::string>());
  EXPECT_LT(worst_logit(backbone->encoder, values["exported"]["logits"]), 1e-4);
}

}  // namespace
}  // namespace ymir
