// A real pretrained LLaMA (stories260K, 260,000 parameters) against transformers' values in
// tests/reference/stories_values.json. Skipped where ../shared is not.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/tune/model/backbone_torch.h"
#include "ymir/tune/trainer/task_torch.h"
#include "ymir/tune/trainer/tiny_job.h"

namespace ymir {
namespace {

std::string stories_file() {
  const char* shared = std::getenv("YMIR_SHARED");
  return std::string(shared != nullptr ? shared : YMIR_SOURCE_DIR "/../shared") +
         "/data/models/stories260k/stories260K.bin";
}

// llama2.c's file: 7 int32, then f32 tensors in a fixed order, each over all layers.
class StoriesFile {
 public:
  explicit StoriesFile(const std::string& bytes) : bytes_(bytes) {
    std::memcpy(sizes_, bytes.data(), sizeof sizes_);
    at_ = sizeof sizes_;
  }
  std::int64_t dim() const { return sizes_[0]; }
  std::int64_t hidden() const { return sizes_[1]; }
  std::int64_t layers() const { return sizes_[2]; }
  std::int64_t heads() const { return sizes_[3]; }
  std::int64_t kv_heads() const { return sizes_[4]; }
  std::int64_t vocabulary() const { return sizes_[5]; }
  std::int64_t positions() const { return sizes_[6]; }
  std::vector<float> take(std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count));
    std::memcpy(out.data(), bytes_.data() + at_, out.size() * sizeof(float));
    at_ += out.size() * sizeof(float);
    return out;
  }

 private:
  const std::string& bytes_;
  std::int32_t sizes_[7] = {};
  std::size_t at_ = 0;
};

// Neighbouring pairs to halves: line (head, i, pair member) goes to (head, member, i).
std::vector<float> to_halves(const std::vector<float>& w, std::int64_t heads, std::int64_t in) {
  const std::int64_t width = static_cast<std::int64_t>(w.size()) / heads / in;
  std::vector<float> out(w.size());
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t to = head * width + i % 2 * (width / 2) + i / 2;
      std::copy_n(w.begin() + (head * width + i) * in, in, out.begin() + to * in);
    }
  return out;
}

// Writes the model as a folder of transformers' form.
void convert(const std::string& bytes, const std::string& folder) {
  StoriesFile file(bytes);
  const std::int64_t d = file.dim(), f = file.hidden();
  const std::int64_t narrow = d / file.heads() * file.kv_heads();
  std::map<std::string, std::pair<Shape, std::vector<float>>> tensors;
  const auto each_layer = [&](const std::string& name, const Shape& shape, std::int64_t heads = 0) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    for (std::int64_t layer = 0; layer < file.layers(); ++layer) {
      std::vector<float> values = file.take(count);
      if (heads > 0) values = to_halves(values, heads, d);
      tensors["model.layers." + std::to_string(layer) + "." + name + ".weight"] = {
          shape, std::move(values)};
    }
  };
  tensors["model.embed_tokens.weight"] = {{file.vocabulary(), d}, file.take(file.vocabulary() * d)};
  each_layer("input_layernorm", {d});
  each_layer("self_attn.q_proj", {d, d}, file.heads());
  each_layer("self_attn.k_proj", {narrow, d}, file.kv_heads());
  each_layer("self_attn.v_proj", {narrow, d});
  each_layer("self_attn.o_proj", {d, d});
  each_layer("post_attention_layernorm", {d});
  each_layer("mlp.gate_proj", {f, d});
  each_layer("mlp.down_proj", {d, f});
  each_layer("mlp.up_proj", {f, d});
  tensors["model.norm.weight"] = {{d}, file.take(d)};
  TensorMap map;
  for (const auto& [name, tensor] : tensors) map[name] = view_of(tensor.second, tensor.first);
  ASSERT_TRUE(make_folders(folder));
  ASSERT_TRUE(write_safetensors(folder + "/model.safetensors", map));
  const Json config = {{"model_type", "llama"},
                       {"vocab_size", file.vocabulary()},
                       {"hidden_size", d},
                       {"intermediate_size", f},
                       {"num_hidden_layers", file.layers()},
                       {"num_attention_heads", file.heads()},
                       {"num_key_value_heads", file.kv_heads()},
                       {"max_position_embeddings", file.positions()},
                       {"rms_norm_eps", 1e-5},
                       {"tie_word_embeddings", true}};
  ASSERT_TRUE(write_file(folder + "/config.json", config.dump()));
}

class Stories : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(2);
    const auto bytes = read_file(stories_file());
    if (!bytes) GTEST_SKIP() << "no " << stories_file();
    convert(*bytes, at.path("model"));
    values = Json::parse(*read_file(YMIR_SOURCE_DIR "/tests/reference/stories_values.json"));
    ModelFiles files;
    files.folder = at.path("model");
    files.config = *parse_model_config(*read_file(at.path("model") + "/config.json"));
    files.key = "stories" + std::string(64, 'x');
    auto opened = open_backbone(files, at.path("cache"), true);
    ASSERT_TRUE(opened) << opened.error().message;
    backbone = *std::move(opened);
    task.setup.kind = TaskKind::kLanguageModel;
    task.setup.head = no_head();
    MethodSpec method;
    method.targets = {"q_proj", "v_proj", "down_proj"};
    task.setup.adapter = *make_adapter(backbone->encoder, method);
    task.adapter = initial_adapter(task.setup.adapter, backbone->encoder, 1);
    task.head = task.setup.head.layout.zeros();
    task.adapter_moments = zero_moments(task.setup.adapter.layout);
    task.head_moments = zero_moments(task.setup.head.layout);
    batch.input.ids = values["ids"].get<std::vector<std::int32_t>>();
    batch.input.layout.offsets.push_back(static_cast<std::int64_t>(batch.input.ids.size()));
    batch.rows = {0};
    batch.learn.assign(batch.input.ids.size(), 1);
  }

  const testing::Workspace at;
  Json values;
  std::unique_ptr<Backbone> backbone;
  Task task;
  Batch batch;
};

TEST_F(Stories, TellsTheSameStoryAsTransformers) {
  const at::Tensor logits =
      logits_of(task.setup, task.adapter, task.head, backbone->encoder, batch.input);

  const std::int64_t width = logits.size(1), last = logits.size(0) - 1;
  const float* data = logits.const_data_ptr<float>();
  for (std::int64_t t = 0; t < last; ++t) {
    const float* line = data + t * width;
    EXPECT_EQ(std::max_element(line, line + width) - line,
              batch.input.ids[static_cast<std::size_t>(t + 1)])
        << "token " << t + 1;
  }
  for (std::int64_t i = 0; i < width; ++i)
    EXPECT_NEAR(data[last * width + i], values["last"][static_cast<std::size_t>(i)].get<double>(),
                1e-3);  // logits reach 20
}

TEST_F(Stories, LossEqualsThatOfTransformers) {
  const LossSum f32 = causal_loss_of(task.setup, task.adapter, backbone->encoder, batch);
  const LossSum bf16 = causal_loss_of(task.setup, task.adapter, backbone->encoder16, batch);

  EXPECT_EQ(f32.labels, 60);
  EXPECT_NEAR(f32.sum / 60, values["loss"].get<double>(), 1e-4);
  EXPECT_NEAR(bf16.sum / 60, values["loss"].get<double>(), 0.02);
}

TEST_F(Stories, LearnsTheAnswerAndNotThePrompt) {
  std::fill_n(batch.learn.begin(), 30, std::uint8_t{0});
  task.setup.train.schedule = "constant";
  task.setup.train.lr = 1e-2;
  task.setup.schedule = *make_schedule(task.setup.train, 10);

  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    TaskGradient gradient = gradient_of(task, backbone->encoder, batch, 0);
    EXPECT_EQ(gradient.labels, 31);
    losses.push_back(gradient.loss_sum / 31);
    update_task(task, gradient);
  }

  EXPECT_LT(losses.back(), 0.5 * losses.front());
}

}  // namespace
}  // namespace ymir
