#include "ymir/tune/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using testing::HasSubstr;

Json small_config() {
  return {{"model_type", "bert"},     {"vocab_size", 500},
          {"hidden_size", 8},         {"num_hidden_layers", 2},
          {"num_attention_heads", 2}, {"intermediate_size", 16},
          {"hidden_act", "gelu"},     {"max_position_embeddings", 64}};
}

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Tokenizer::load(YMIR_SOURCE_DIR "/tests/reference/tokenizer/uncased");
    ASSERT_TRUE(loaded);
    tokenizer = *std::move(loaded);
    write("config.json", small_config().dump());
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(folder + "/" + name, text));
  }
  void write_weights(const std::string& name, const std::vector<std::string>& tensors) {
    TensorMap map;
    for (const auto& tensor : tensors) map[tensor] = view_of(values, {2});
    ASSERT_TRUE(write_safetensors(folder + "/" + name, map));
  }
  std::string read_fault() {
    const auto result = read_model_files(folder, &tokenizer, "");
    return result ? "none" : result.error().message;
  }
  std::string open_fault() {
    const auto result = ModelWeights::open(folder);
    return result ? "none" : result.error().message;
  }
  const std::vector<float> values = {1, 2};
  const TempFolder temporary_{"model"};
  const std::string folder = temporary_.path();
  Tokenizer tokenizer;
};

TEST_F(ModelFolder, GivesItsConfigurationAndAKeyThatFollowsTheWeights) {
  write_weights("model.safetensors", {"a"});
  const auto first = read_model_files(folder, &tokenizer, "");
  write_weights("model.safetensors", {"b"});
  const auto second = read_model_files(folder, &tokenizer, "");

  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->config.num_layers, 2);
  EXPECT_EQ(first->config.classifier_dropout, 0.1);
  EXPECT_EQ(first->weights, std::vector<std::string>{folder + "/model.safetensors"});
  EXPECT_EQ(first->key.size(), 64u);
  EXPECT_NE(first->key, second->key);
}

TEST_F(ModelFolder, WithOnlyAPickleIsRefusedWithTheCommandThatConvertsIt) {
  write("pytorch_model.bin", "x");

  EXPECT_THAT(read_fault(), HasSubstr("is a pickle and is never loaded; convert it with: python3"));
  EXPECT_THAT(open_fault(), HasSubstr("pickle"));
}

TEST_F(ModelFolder, WithoutWeightsOrConfigurationSaysWhichIsMissing) {
  EXPECT_EQ(read_fault(), folder + ": no model.safetensors");
  std::filesystem::remove(folder + "/config.json");
  EXPECT_EQ(read_fault(), "no config.json in " + folder);
}

TEST_F(ModelFolder, WithATokenizerThatKnowsMoreThanTheModelIsRefused) {
  write_weights("model.safetensors", {"a"});
  Json config = small_config();
  config["vocab_size"] = 100;
  write("config.json", config.dump());

  EXPECT_THAT(read_fault(), HasSubstr("the model knows 100 tokens"));
}

TEST_F(ModelFolder, InShardsIsReadAsOne) {
  write_weights("model-1.safetensors", {"a", "b"});
  write_weights("model-2.safetensors", {"c"});
  write(
      "model.safetensors.index.json",
      R"({"weight_map":{"a":"model-1.safetensors","b":"model-1.safetensors","c":"model-2.safetensors"}})");

  const auto weights = ModelWeights::open(folder);

  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->tensors().size(), 3u);
  EXPECT_EQ(*to_f32(weights->tensors().at("c")), values);
  EXPECT_EQ(weights->paths().size(), 2u);
}

TEST_F(ModelFolder, WhoseShardsAndIndexDifferIsRefused) {
  write_weights("model-1.safetensors", {"a", "b"});
  const auto index = [this](const std::string& map) {
    write("model.safetensors.index.json", R"({"weight_map":)" + map + "}");
    return open_fault();
  };

  EXPECT_THAT(index(R"({"a":"model-1.safetensors"})"), HasSubstr("holds tensor b"));
  EXPECT_THAT(
      index(R"({"a":"model-1.safetensors","b":"model-1.safetensors","x":"model-1.safetensors"})"),
      HasSubstr("lacks tensor x"));
  EXPECT_THAT(index(R"({"a":"../model-1.safetensors"})"), HasSubstr("tensor a lies in no"));
  EXPECT_THAT(index(R"({"a":"model-9.safetensors"})"), HasSubstr("model-9.safetensors"));
}

TEST(ModelConfig, WhatIsNotBuiltIsRefusedByName) {
  const auto fault = [](const char* key, const Json& value) {
    Json config = small_config();
    config[key] = value;
    const auto result = parse_model_config(config.dump());
    return result ? "none" : result.error().message;
  };

  EXPECT_THAT(fault("model_type", "gpt2"), HasSubstr("architecture \"gpt2\" is not supported"));
  EXPECT_THAT(fault("hidden_act", "tanh"), HasSubstr("hidden_act \"tanh\" is not supported"));
  EXPECT_THAT(fault("position_embedding_type", "relative_key"), HasSubstr("relative_key"));
  EXPECT_THAT(fault("num_attention_heads", 3), HasSubstr("no multiple"));
  EXPECT_THAT(fault("hidden_size", -8), HasSubstr("hidden_size -8"));
  EXPECT_THAT(fault("hidden_dropout_prob", 1.5), HasSubstr("hidden_dropout_prob 1.5"));
  EXPECT_THAT(fault("vocab_size", nullptr), HasSubstr("vocab_size is missing"));
  EXPECT_EQ(fault("classifier_dropout", nullptr), "none");
}

Json llama_config() {
  return {{"model_type", "llama"},      {"vocab_size", 500},
          {"hidden_size", 32},          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},   {"num_key_value_heads", 2},
          {"intermediate_size", 48},    {"max_position_embeddings", 64},
          {"tie_word_embeddings", true}};
}

TEST(ModelConfig, OfRobertaLeavesThePlacesOfThePadding) {
  Json config = small_config();
  config["model_type"] = "roberta";
  config["pad_token_id"] = 1;

  const auto model = parse_model_config(config.dump());

  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->position_offset, 2);
  EXPECT_EQ(model->max_positions, 62);
}

TEST(ModelConfig, OfLlamaReadsBothFormsOfRotaryScaling) {
  Json older = llama_config(), newer = llama_config();
  older["rope_theta"] = 500000.0;
  older["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  newer["rope_parameters"] = {{"rope_type", "llama3"},   {"rope_theta", 500000.0},
                              {"factor", 8.0},           {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 32}};

  const auto linear = parse_model_config(older.dump()), llama3 = parse_model_config(newer.dump());

  ASSERT_TRUE(linear && llama3);
  EXPECT_EQ(linear->rotary.scaling, RotaryConfig::Scaling::kLinear);
  EXPECT_EQ(linear->rotary.theta, 500000);
  EXPECT_EQ(linear->rotary.factor, 2);
  EXPECT_EQ(llama3->rotary.scaling, RotaryConfig::Scaling::kLlama3);
  EXPECT_EQ(llama3->rotary.original_positions, 32);
  EXPECT_EQ(llama3->head_width, 8);
  EXPECT_TRUE(llama3->tied_output && llama3->causal && llama3->gated && llama3->norm_first);
}

TEST(ModelConfig, OfOtherFamiliesIsCheckedToo) {
  const auto fault = [](Json config, const char* key, const Json& value) {
    config[key] = value;
    const auto result = parse_model_config(config.dump());
    return result ? "none" : result.error().message;
  };
  Json vit = small_config();
  vit["model_type"] = "vit";
  vit["image_size"] = 32;

  EXPECT_THAT(fault(llama_config(), "rope_scaling", {{"type", "proportional"}, {"factor", 2.0}}),
              HasSubstr("rope_type \"proportional\" is not supported"));
  EXPECT_EQ(fault(llama_config(), "rope_scaling", {{"type", "yarn"}, {"factor", 2.0}}), "none");
  EXPECT_THAT(fault(llama_config(), "rope_scaling",
                    {{"type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {1.0}}}),
              HasSubstr("short_factor is not a list of 4 numbers"));
  EXPECT_THAT(fault(llama_config(), "num_key_value_heads", 3), HasSubstr("no multiple"));
  EXPECT_THAT(fault(llama_config(), "head_dim", 7), HasSubstr("head_dim 7 is odd"));
  EXPECT_THAT(fault(llama_config(), "pretraining_tp", 2), HasSubstr("pretraining_tp 2"));
  EXPECT_EQ(fault(llama_config(), "pad_token_id", -1), "none");
  EXPECT_THAT(fault(vit, "patch_size", 5), HasSubstr("image_size 32 is no multiple"));
  EXPECT_EQ(fault(vit, "patch_size", 8), "none");
}

TEST(ModelConfig, LabelsComeInTheOrderOfTheirNumbers) {
  Json config = small_config();
  config["id2label"] = {{"1", "yes"}, {"0", "no"}};

  EXPECT_EQ(parse_model_config(config.dump())->labels, (std::vector<std::string>{"no", "yes"}));
}

}  // namespace
}  // namespace ymir
