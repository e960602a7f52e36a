#include "ymir/tune/checkpoint/peft_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class AdapterFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder = root + "/adapter";
    const std::string query = "bert.encoder.layer.0.attention.self.query";
    tensors[lora_name(query, 'A')] = view_of(a, {2, 3});
    tensors[lora_name(query, 'B')] = view_of(b, {4, 2});
    tensors[saved_name("classifier", "weight")] = view_of(head, {2, 4});
    config.base_model = "models/mini \"lm\"";
    config.rank = 2;
    config.targets = {"query"};
    config.modules_to_save = {"classifier"};
    notes.task_kind = "classify";
    notes.labels = {"no", "yes"};
    notes.max_length = 64;
    notes.lineage = {{"mode", "temporal"}, {"partner", "j3"}};
    notes.metrics = {{"accuracy", 0.875}};
  }
  std::string read_fault() {
    const auto result = read_adapter(folder);
    return result ? "none" : result.error().message;
  }
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 2, 3, 4, 5, 6, 7, 0.1f},
                           head = {1, 2, 3, 4, 5, 6, 7, 8};
  const TempFolder temporary_{"peft"};
  const std::string root = temporary_.path();
  std::string folder;
  TensorMap tensors;
  PeftConfig config;
  AdapterNotes notes;
};

TEST_F(AdapterFolder, ComesBackAsItWasWritten) {
  ASSERT_TRUE(write_adapter(folder, config, tensors, notes));

  const auto adapter = read_adapter(folder);

  ASSERT_TRUE(adapter) << adapter.error().message;
  EXPECT_EQ(adapter->tensors, tensors);
  EXPECT_EQ(adapter->config.rank, 2);
  EXPECT_EQ(adapter->config.scale(), 8);
  EXPECT_EQ(adapter->config.base_model, config.base_model);
  EXPECT_THAT(adapter->config.modules_to_save, ElementsAre("classifier", "score"));
  EXPECT_THAT(adapter->notes.labels, ElementsAre("no", "yes"));
  EXPECT_EQ(adapter->notes.lineage, notes.lineage);
  EXPECT_EQ(adapter->notes.metrics, notes.metrics);
  EXPECT_THAT(*read_file(folder + "/README.md"), HasSubstr("| accuracy (validation) | 0.8750 |"));
}

TEST_F(AdapterFolder, OfAPrefixNamesItsHeadAsPeftDoes) {
  config.kind = "prefix";
  config.virtual_tokens = 2;
  config.token_dim = config.num_heads = config.num_layers = 1;
  tensors = {{"prompt_embeddings", view_of(std::span(a).first(4), {2, 2})},
             {saved_name("classifier", "weight"), view_of(head, {2, 4})}};

  ASSERT_TRUE(write_adapter(folder, config, tensors, notes));

  const auto file = SafetensorsFile::open(folder + "/adapter_model.safetensors");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->tensors().contains("base_model.classifier.weight"));
  EXPECT_FALSE(file->tensors().contains("base_model.model.classifier.weight"));
  EXPECT_EQ(read_adapter(folder)->tensors, tensors);
}

TEST_F(AdapterFolder, IsReplacedAsOneAndLeavesNothingBeside) {
  ASSERT_TRUE(write_adapter(folder, config, tensors, notes));
  const std::string first = read_adapter(folder)->sha256;
  const std::vector<float> other(8, 2);
  tensors[saved_name("classifier", "weight")] = view_of(other, {2, 4});

  ASSERT_TRUE(write_adapter(folder, config, tensors, notes));

  EXPECT_NE(read_adapter(folder)->sha256, first);
  EXPECT_EQ(std::distance(fs::directory_iterator(root), {}), 1);
}

// Nothing is allocated for sizes that the tensors do not have.
TEST_F(AdapterFolder, OfOtherSizesThanItsConfigurationSaysIsRefused) {
  const auto fault = [&](const PeftConfig& made, const TensorMap& with) {
    EXPECT_TRUE(make_folders(folder));
    EXPECT_TRUE(write_file(folder + "/adapter_config.json", peft_config_text(made)));
    EXPECT_TRUE(write_safetensors(folder + "/adapter_model.safetensors", with));
    return read_fault();
  };
  PeftConfig prefix{.kind = "prefix", .task_type = "SEQ_CLS"};
  prefix.virtual_tokens = 999'999'999;
  prefix.num_layers = prefix.num_heads = 1;
  prefix.token_dim = 2;
  PeftConfig bottleneck{.kind = "bottleneck", .task_type = "SEQ_CLS"};
  bottleneck.width = 1'000'000'000;

  EXPECT_THAT(fault(prefix, {{"prompt_embeddings", view_of(head, {2, 4})}}),
              HasSubstr("prompt_embeddings is [2, 4], the configuration says [999999999, 4]"));
  EXPECT_THAT(fault(bottleneck, {{"x.adapter.down.weight", view_of(head, {2, 4})}}),
              HasSubstr("x.adapter.down.weight is [2, 4], the width is 1000000000"));
  EXPECT_THAT(fault(bottleneck, tensors), HasSubstr("holds no bottleneck"));
}

TEST_F(AdapterFolder, WhatAKilledWriterLeftGoesWithTheNextOne) {
  ASSERT_TRUE(make_folders(folder + ".tmp123"));
  ASSERT_TRUE(write_file(folder + ".tmp123/adapter_config.json", "{"));
  ASSERT_TRUE(write_file(root + "/notes.tmp", "of the user"));

  ASSERT_TRUE(write_adapter(folder, config, tensors, notes));

  EXPECT_FALSE(fs::exists(folder + ".tmp123"));
  EXPECT_TRUE(fs::exists(root + "/notes.tmp"));
}

TEST_F(AdapterFolder, WithAChangedTensorFileIsRefused) {
  ASSERT_TRUE(write_adapter(folder, config, tensors, notes));
  std::string bytes = *read_file(folder + "/adapter_model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(write_file(folder + "/adapter_model.safetensors", bytes));

  EXPECT_THAT(read_fault(), HasSubstr("differ from the hashes in ymir_adapter.json"));
}

TEST_F(AdapterFolder, MadeElsewhereNeedsNoNotesAndHalvesBecomeFloats) {
  ASSERT_TRUE(write_adapter(folder, config, tensors, notes));
  fs::remove(folder + "/ymir_adapter.json");
  const std::vector<std::uint16_t> halves = {0x3c00, 0x4000, 0, 0, 0, 0, 0, 0};
  tensors[saved_name("classifier", "weight")] = {
      DType::kF16, {2, 4}, std::as_bytes(std::span(halves))};
  ASSERT_TRUE(write_safetensors(folder + "/adapter_model.safetensors", tensors));

  const auto adapter = read_adapter(folder);

  ASSERT_TRUE(adapter) << adapter.error().message;
  const auto& classifier = adapter->tensors.at(saved_name("classifier", "weight"));
  EXPECT_EQ(classifier.dtype, DType::kF32);
  EXPECT_EQ((*to_f32(classifier))[1], 2);
  EXPECT_TRUE(adapter->notes.labels.empty());
}

TEST_F(AdapterFolder, OfATrainingThatDivergedIsRefused) {
  auto changed = tensors;
  auto& first = changed.begin()->second;
  std::vector<float> broken(first.count(), 1);
  broken.back() = std::numeric_limits<float>::quiet_NaN();
  first = view_of(broken, first.shape);
  ASSERT_TRUE(write_adapter(folder, config, changed, notes));

  const auto adapter = read_adapter(folder);

  ASSERT_FALSE(adapter);
  EXPECT_EQ(adapter.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(adapter.error().message,
              HasSubstr("tensor " + changed.begin()->first + " holds NaN or infinity"));
}

TEST_F(AdapterFolder, NotesWithOddValuesAreRefusedByName) {
  ASSERT_TRUE(write_adapter(folder, config, tensors, notes));
  const std::string path = folder + "/ymir_adapter.json";
  const Json good = *parse_json(*read_file(path));
  const auto refusal = [&](const Json& changed) {
    EXPECT_TRUE(write_file(path, changed.dump()));
    const auto adapter = read_adapter(folder);
    return adapter ? "read" : adapter.error().message;
  };
  const auto with = [&](const char* key, const Json& value) {
    Json changed = good;
    changed[key] = value;
    return refusal(changed);
  };

  EXPECT_EQ(refusal(Json::array()), path + ": not an object");
  EXPECT_EQ(with("labels", 3), path + ": labels is missing, or of another type than it has to be");
  EXPECT_EQ(with("prompt_template", 3),
            path + ": prompt_template is missing, or of another type than it has to be");
  EXPECT_THAT(with("task_kind", "wat"), HasSubstr("task_kind \"wat\" is not one of classify"));
  EXPECT_THAT(with("max_length", -5), HasSubstr("max_length -5 is not in 0..1048576"));
  EXPECT_THAT(with("max_length", 4'294'967'360), HasSubstr("max_length 4294967360 is not in"));
}

TEST_F(AdapterFolder, OddTensorsAreRefusedByName) {
  const auto fault = [this](const std::string& name, const TensorView& view) {
    TensorMap changed = tensors;
    changed[name] = view;
    const auto result = write_adapter(folder, config, changed, notes);
    return result ? "none" : result.error().message;
  };

  EXPECT_THAT(fault("base_model.model.x.lora_A.weight", view_of(a, {2, 3})),
              HasSubstr("x.lora_A.weight has no base_model.model.x.lora_B.weight"));
  EXPECT_THAT(
      fault(lora_name("bert.encoder.layer.0.attention.self.query", 'A'), view_of(a, {3, 2})),
      HasSubstr("is [3, 2], the rank is 2"));
  EXPECT_THAT(fault("base_model.model.pooler.weight", view_of(a, {6})),
              HasSubstr("pooler.weight lies in no module of modules_to_save"));
  EXPECT_THAT(fault("base_model.model.e.lora_embedding_A", view_of(a, {6})),
              HasSubstr("lora_embedding_A is of a kind that is not supported"));
  EXPECT_THAT(fault("classifier.bias", view_of(a, {6})), HasSubstr("does not begin with"));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(AdapterFolder, WithOnlyAPickleIsRefused) {
  ASSERT_TRUE(make_folders(folder));
  ASSERT_TRUE(write_file(folder + "/adapter_config.json", peft_config_text(config)));
  ASSERT_TRUE(write_file(folder + "/adapter_model.bin", "x"));

  EXPECT_THAT(read_fault(), HasSubstr("is a pickle and is never loaded"));
}

// tests/reference/peft: saved by PEFT itself (make_peft_reference.py).
TEST_F(AdapterFolder, OfPeftComesThroughWithEveryTensorUnchanged) {
  const std::string theirs = YMIR_SOURCE_DIR "/tests/reference/peft";
  const auto first = read_adapter(theirs);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(write_adapter(folder, first->config, first->tensors, notes));

  const auto second = read_adapter(folder);

  ASSERT_TRUE(second) << second.error().message;
  const auto original = SafetensorsFile::open(theirs + "/adapter_model.safetensors");
  EXPECT_EQ(second->tensors, original->tensors());
  EXPECT_EQ(second->tensors.size(), 10u);
  EXPECT_EQ(second->config.scale(), 2);
  EXPECT_TRUE(second->tensors.contains(saved_name("classifier", "bias")));
  EXPECT_TRUE(
      second->tensors.contains(lora_name("bert.encoder.layer.1.attention.self.value", 'B')));
}

TEST(PeftConfig, IsWrittenWithSortedKeysAndTwoSpaces) {
  PeftConfig config;
  config.base_model = "m";
  config.targets = {"query", "value"};
  config.modules_to_save = {"classifier"};

  const std::string text = peft_config_text(config);

  EXPECT_TRUE(text.starts_with("{\n  \"alpha_pattern\": {},\n  \"auto_mapping\": null,\n"));
  EXPECT_THAT(text, HasSubstr("\n  \"lora_alpha\": 16,\n"));
  EXPECT_THAT(text, HasSubstr("\n  \"lora_dropout\": 0.0,\n"));
  EXPECT_THAT(text, HasSubstr("\n  \"modules_to_save\": [\n    \"classifier\"\n  ],\n"));
  EXPECT_EQ(parse_peft_config(text)->targets, config.targets);
}

TEST(PeftConfig, WhatWouldChangeTheResultAndIsNotBuiltIsRefusedByName) {
  const auto fault = [](const char* key, const Json& value) {
    Json json = {{"peft_type", "LORA"}, {"r", 8}, {"target_modules", {"query"}}};
    json[key] = value;
    const auto result = parse_peft_config(json.dump());
    return result ? "none" : result.error().message;
  };

  EXPECT_THAT(fault("peft_type", "IA3"), HasSubstr("peft_type \"IA3\" is not supported"));
  for (const char* key : {"lora_bias", "use_qalora", "fan_in_fan_out"})
    EXPECT_EQ(fault(key, true), std::string(key) + " true is not supported");
  EXPECT_EQ(fault("bias", "all"), "bias \"all\" is not supported");
  EXPECT_THAT(fault("layer_replication", Json::parse("[[0, 4]]")), HasSubstr("layer_replication"));
  EXPECT_THAT(fault("target_parameters", {"w"}), HasSubstr("target_parameters"));
  EXPECT_THAT(fault("trainable_token_indices", {1}), HasSubstr("trainable_token_indices"));
  EXPECT_THAT(fault("alora_invocation_tokens", {1}), HasSubstr("alora_invocation_tokens"));
  EXPECT_THAT(fault("rank_pattern", {{"^query$", 4}}), HasSubstr("rank_pattern \"^query$\""));
  EXPECT_THAT(fault("rank_pattern", {{"query", 0}}), HasSubstr("rank_pattern 0 is not in"));
  EXPECT_THAT(fault("use_dora", 1), HasSubstr("use_dora is not true or false"));
  EXPECT_THAT(fault("something_new", 3), HasSubstr("something_new 3 is not supported"));
  EXPECT_EQ(fault("target_modules", "all-linear"), "none");
  EXPECT_THAT(fault("task_type", "SEQ_2_SEQ_LM"), HasSubstr("SEQ_2_SEQ_LM"));
  EXPECT_THAT(fault("r", 0), HasSubstr("r 0 is not in"));
  EXPECT_THAT(fault("lora_alpha", 1e300), HasSubstr("lora_alpha 1e+300 is beyond 1e+06"));
  EXPECT_THAT(fault("alpha_pattern", {{"query", -1e300}}),
              HasSubstr("alpha_pattern query -1e+300"));
  EXPECT_THAT(fault("lora_dropout", 1.5), HasSubstr("lora_dropout 1.5"));
  EXPECT_THAT(fault("init_lora_weights", "pissa_niter_4"), HasSubstr("init_lora_weights"));
  EXPECT_EQ(fault("init_lora_weights", "gaussian"), "none");
  EXPECT_EQ(fault("layers_to_transform", {0, 1}), "none");
  EXPECT_EQ(fault("use_dora", true), "none");
}

TEST(PeftConfig, RanksByModuleAreReadAndWritten) {
  PeftConfig config;
  config.targets = {"query", "value"};
  config.magnitude = true;
  config.rank_pattern = {{"layer.1.attention.self.query", 4}, {"value", 2}};
  config.alpha_pattern = {{"value", 32}};

  const auto read = parse_peft_config(peft_config_text(config));

  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rank_of("bert.encoder.layer.1.attention.self.query"), 4);
  EXPECT_EQ(read->rank_of("bert.encoder.layer.0.attention.self.query"), 8);
  EXPECT_EQ(read->rank_of("bert.encoder.layer.0.attention.self.value"), 2);
  EXPECT_EQ(read->alpha_pattern, config.alpha_pattern);
  EXPECT_TRUE(read->magnitude);
}

TEST(PeftConfig, PrefixTuningIsReadAndWritten) {
  PeftConfig config;
  config.kind = "prefix";
  config.task_type = "CAUSAL_LM";
  config.virtual_tokens = 5;
  config.token_dim = 64;
  config.num_heads = 4;
  config.num_layers = 2;

  const std::string text = peft_config_text(config);
  const auto read = parse_peft_config(text);

  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(text, HasSubstr("\"peft_type\": \"PREFIX_TUNING\""));
  EXPECT_EQ(read->virtual_tokens, 5);
  EXPECT_EQ(read->token_dim, 64);
  EXPECT_FALSE(parse_peft_config(
      R"({"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 5, "prefix_projection": true})"));
}

// As PEFT 0.21.2 writes it (LoraConfig(...).save_pretrained).
TEST(PeftConfig, PeftsOwnFileIsRead) {
  const auto config = parse_peft_config(R"({
    "alora_invocation_tokens": null, "alpha_pattern": {}, "arrow_config": null,
    "auto_mapping": null, "base_model_name_or_path": null, "bias": "none", "corda_config": null,
    "ensure_weight_tying": false, "eva_config": null, "exclude_modules": null,
    "fan_in_fan_out": false, "inference_mode": false, "init_lora_weights": true,
    "kasa_config": null, "layer_replication": null, "layers_pattern": null,
    "layers_to_transform": null, "loftq_config": {}, "lora_alpha": 16, "lora_bias": false,
    "lora_dropout": 0.05, "lora_ga_config": null, "megatron_config": null,
    "megatron_core": "megatron.core", "modules_to_save": ["classifier"],
    "monteclora_config": null, "peft_type": "LORA", "peft_version": "0.21.2",
    "qalora_group_size": 16, "r": 4, "rank_pattern": {}, "revision": null,
    "target_modules": ["value", "query"], "target_parameters": null, "task_type": "SEQ_CLS",
    "trainable_token_indices": null, "use_bdlora": null, "use_dora": false, "use_qalora": false,
    "use_rslora": true, "velora_config": null})");

  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->rank, 4);
  EXPECT_EQ(config->scale(), 8);
  EXPECT_EQ(config->dropout, 0.05);
  EXPECT_THAT(config->targets, ElementsAre("query", "value"));
}

}  // namespace
}  // namespace ymir
