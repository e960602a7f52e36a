#include "ymir/tune/model/backbone_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using testing::HasSubstr;

// A whole model of one layer whose tensors a test may spoil before they are written.
class BackboneWeights : public testing::Test {
 protected:
  BackboneWeights() {
    model_.folder = folder_.path();
    model_.weights = {path_};
    model_.config = {.family = "bert",
                     .vocabulary_size = 10,
                     .hidden_size = 4,
                     .num_layers = 1,
                     .num_heads = 2,
                     .num_kv_heads = 2,
                     .head_width = 2,
                     .intermediate_size = 8,
                     .max_positions = 6};
    model_.key = std::string(64, 'k');
    for (const ImageEntry& entry : image_layout(model_.config, {})) {
      Shape shape = entry.shape;
      shape[0] /= static_cast<std::int64_t>(entry.sources.size());  // q, k and v are equally high
      std::size_t count = 1;
      for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
      for (const std::string& name : entry.sources)
        tensors_["bert." + name] = view_of(std::span(values_).first(count), shape);
    }
  }
  std::string fault() {
    EXPECT_TRUE(write_safetensors(path_, tensors_));
    const Result<> checked = check_weights(model_);
    return checked ? "none" : checked.error().message;
  }

  TempFolder folder_{"backbone"};
  std::string path_ = folder_ / "model.safetensors";
  std::vector<float> values_ = std::vector<float>(256, 0.5f);
  const std::string query_ = "bert.encoder.layer.0.attention.self.query.weight";
  ModelFiles model_{};
  TensorMap tensors_{};
};

TEST_F(BackboneWeights, ThatAreWholePass) { EXPECT_EQ(fault(), "none"); }

TEST_F(BackboneWeights, WithoutATensorNameFileAndTensor) {
  tensors_.erase(query_);

  EXPECT_EQ(fault(), path_ + ": tensor is missing: " + query_.substr(5));
}

TEST_F(BackboneWeights, OfAnotherShapeThanTheConfigurationSaysAreRefused) {
  tensors_[query_] = view_of(std::span(values_).first(8), {4, 2});

  EXPECT_EQ(fault(),
            path_ + ": tensor " + query_.substr(5) + " is [4, 2], config.json says [4, 4]");
}

TEST_F(BackboneWeights, OfWholeNumbersAreRefused) {
  tensors_[query_] = {DType::kI32, {4, 4}, std::as_bytes(std::span(values_).first(16))};

  EXPECT_THAT(fault(), HasSubstr("query.weight is I32, not floating point"));
}

TEST_F(BackboneWeights, WithATensorOfAnotherArchitectureAreRefused) {
  tensors_["encoder.layer.0.rotary.weight"] = view_of(std::span(values_).first(4), {4});

  EXPECT_THAT(fault(), HasSubstr("belongs to no part of the model"));
}

TEST_F(BackboneWeights, InAFileThatWasCutAreRefusedByItsName) {
  ASSERT_EQ(fault(), "none");
  const auto whole = read_file(path_);
  ASSERT_TRUE(write_file(path_, whole->substr(0, whole->size() - 100)));

  const Result<> checked = check_weights(model_);

  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr(path_));
  EXPECT_EQ(exit_code(checked.error().code), 2);
}

TEST_F(BackboneWeights, WhatAKilledWriterLeftOfTheImageGoesWithTheNextOne) {
  namespace fs = std::filesystem;
  ASSERT_EQ(fault(), "none");
  ASSERT_TRUE(BackboneImage::open(model_, folder_ / "first", false));
  const fs::path written = *fs::directory_iterator(folder_ / "first/images");
  const std::string image = folder_ / "cache/images/" + written.stem().string() + ".safetensors";
  ASSERT_TRUE(make_folders(folder_ / "cache/images"));
  ASSERT_TRUE(write_file(image + ".tmp123-0", "half"));

  const auto opened = BackboneImage::open(model_, folder_ / "cache", false);

  EXPECT_TRUE(opened);
  EXPECT_TRUE(fs::exists(image));
  EXPECT_FALSE(fs::exists(image + ".tmp123-0"));
}

TEST_F(BackboneWeights, AreRefusedByTheWorkerForTheSameReason) {
  tensors_.erase(query_);
  const std::string reason = fault();

  const auto image = BackboneImage::open(model_, folder_ / "cache", false);

  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().message, reason);
}

}  // namespace
}  // namespace ymir
