// The backbone image: which type each weight is kept in, and that nothing of it changes a result.
#include "ymir/tune/model/backbone_image.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/tune/model/backbone_torch.h"
#include "ymir/tune/trainer/task_torch.h"
#include "ymir/tune/trainer/tiny_models.h"

namespace ymir {
namespace {

class Image : public ::testing::Test {
 protected:
  std::unique_ptr<Backbone> open(const std::string& folder, bool with_bf16) {
    const auto tokenizer = read_tokenizer(folder);
    EXPECT_TRUE(tokenizer);
    const auto files = read_model_files(folder, tokenizer->get(), "");
    EXPECT_TRUE(files) << files.error().message;
    auto backbone = open_backbone(*files, at.path("cache"), with_bf16);
    EXPECT_TRUE(backbone) << backbone.error().message;
    return *std::move(backbone);
  }
  // The same values as an f32 file.
  std::string widened(const std::string& folder) {
    const auto file = SafetensorsFile::open(folder + "/model.safetensors");
    std::map<std::string, std::vector<float>> values;
    TensorMap map;
    for (const auto& [name, view] : file->tensors()) {
      values[name] = *to_f32(view);
      map[name] = view_of(values[name], view.shape);
    }
    std::filesystem::copy(folder, folder + "-wide");
    EXPECT_TRUE(write_safetensors(folder + "-wide/model.safetensors", map));
    return folder + "-wide";
  }
  const testing::Workspace at;
};

DType dtype_of(const BackboneImage& image, const std::string& name) {
  for (const ImageEntry& entry : image.entries())
    if (entry.name == name) return entry.dtype;
  return DType::kBool;
}

TEST_F(Image, KeepsMatricesInTheTypeOfTheFileAndTheRestInF32) {
  testing::write_tiny_family("llama", at.path("m"), DType::kBF16);
  testing::write_tiny_family("roberta", at.path("r"), DType::kF16);

  const auto llama = open(at.path("m"), true), roberta = open(at.path("r"), true);

  for (const char* name : {"words", "output.weight", "layer.0.qkv.weight", "layer.1.ffn_in.weight"})
    EXPECT_EQ(dtype_of(llama->image, name), DType::kBF16) << name;
  EXPECT_EQ(dtype_of(llama->image, "layer.0.ffn_norm.gain"), DType::kF32);
  EXPECT_TRUE(llama->image.copies16().empty());
  EXPECT_EQ(dtype_of(roberta->image, "layer.0.qkv.weight"), DType::kF16);
  EXPECT_EQ(dtype_of(roberta->image, "positions"), DType::kF32);
  EXPECT_FALSE(roberta->image.copies16().empty());
  EXPECT_FALSE(std::filesystem::exists(at.path("cache") + "/images/" +
                                       llama->files.key.substr(0, 32) + "-v3.copy16.safetensors"));
}

TEST_F(Image, InHalfPrecisionGivesTheBitsOfTheSameValuesInF32) {
  const at::NoGradGuard no_autograd;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const char* family : {"llama", "roberta"}) {
      const std::string folder = at.path(std::string(family) + std::string(dtype_name(dtype)));
      testing::write_tiny_family(family, folder, dtype);
      const auto kept = open(folder, true), wide = open(widened(folder), true);
      EncoderInput input;
      for (std::int32_t t = 0; t < 23; ++t) input.ids.push_back(5 + 7 * t);
      input.layout.offsets = {0, 9, 23};
      for (const auto& [a, b] :
           {std::pair{&kept->encoder, &wide->encoder}, {&kept->encoder16, &wide->encoder16}}) {
        const SlotTable slots = no_slots(a->shape);

        const at::Tensor left = encode(*a, slots, input, {}, nullptr);
        const at::Tensor right = encode(*b, slots, input, {}, nullptr);

        EXPECT_TRUE(at::equal(left, right)) << family << dtype_name(dtype);
      }
    }
  }
}

TEST_F(Image, OfATiedModelInHalfPrecisionTrainsTheWordsThatItPredicts) {
  const at::NoGradGuard no_autograd;
  testing::write_random_weights(
      at.path("tied"),
      R"({"model_type":"llama","hidden_size":32,"num_hidden_layers":1,"num_attention_heads":2,)"
      R"("intermediate_size":48,"vocab_size":1155,"max_position_embeddings":32,)"
      R"("tie_word_embeddings":true})",
      DType::kBF16);
  testing::copy_tokenizer("llama2", at.path("tied"), R"({"tokenizer_class":"LlamaTokenizer"})");
  const auto backbone = open(at.path("tied"), true);
  Task task;
  task.setup.kind = TaskKind::kLanguageModel;
  task.setup.head = no_head();
  MethodSpec method;
  method.kind = "full";
  task.setup.adapter = *make_adapter(backbone->encoder16, method);
  task.adapter = initial_adapter(task.setup.adapter, backbone->encoder16, 1);
  task.head = task.setup.head.layout.zeros();
  task.adapter_moments = zero_moments(task.setup.adapter.layout);
  task.head_moments = zero_moments(task.setup.head.layout);
  task.setup.train.schedule = "constant";
  task.setup.train.lr = 1e-2;
  task.setup.schedule = *make_schedule(task.setup.train, 20);
  Batch batch;
  batch.input.ids = {5, 6, 7, 8, 9, 10};
  batch.input.layout.offsets = {0, 6};
  batch.rows = {0};
  batch.learn = {0, 1, 1, 1, 1, 1};

  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    TaskGradient gradient = gradient_of(task, backbone->encoder16, batch, 0);
    losses.push_back(gradient.loss_sum / 5);
    update_task(task, gradient);
  }

  EXPECT_LT(losses.back(), 0.3 * losses.front());
}

TEST(FlatTensorWriter, WritesWhatIsReadBackAndChecksItsSize) {
  const testing::Workspace at;
  const std::vector<float> values = {1, 2, 3, 0, 0};
  auto writer = FlatTensorWriter::create(at.path("f"), "weights", DType::kF32, 5);
  ASSERT_TRUE(writer);

  ASSERT_TRUE(writer->append(std::as_bytes(std::span(values).first(3))));
  ASSERT_TRUE(writer->append_zeros(8));
  ASSERT_TRUE(writer->commit());

  const auto file = SafetensorsFile::open(at.path("f"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file->find("weights"), view_of(values, {5}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->find("weights")->bytes.data()) % 64, 0u);
}

}  // namespace
}  // namespace ymir
