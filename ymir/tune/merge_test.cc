#include "ymir/tune/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"
#include "ymir/tune/checkpoint/peft_files.h"

namespace ymir {
namespace {

using testing::HasSubstr;

// A model of one weight, and the tensors of a LoRA on it.
class Merging : public testing::Test {
 protected:
  Merging() {
    const Json config = {{"model_type", "bert"},
                         {"architectures", {"BertModel"}},
                         {"vocab_size", 30},
                         {"hidden_size", 4},
                         {"num_hidden_layers", 1},
                         {"num_attention_heads", 2},
                         {"intermediate_size", 8},
                         {"hidden_act", "gelu"},
                         {"max_position_embeddings", 16}};
    EXPECT_TRUE(make_folders(model_));
    EXPECT_TRUE(write_file(model_ + "/config.json", config.dump()));
    EXPECT_TRUE(write_safetensors(model_ + "/model.safetensors",
                                  {{kQuery + ".weight", view_of(weight_, {4, 4})}}));
    lora_.rank = 2;
    lora_.targets = {"query"};
    lora_.modules_to_save = {"classifier"};
    tensors_ = {{lora_name(kQuery, 'A'), view_of(a_, {2, 4})},
                {lora_name(kQuery, 'B'), view_of(b_, {4, 2})}};
  }

  Result<Merged> merge() { return merge_adapter({model_, adapter_, merged_}); }
  // Names of what stands beside the model and the adapter.
  std::set<std::string> left() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(at_.path()))
      names.insert(entry.path().filename().string());
    names.erase("model");
    names.erase("adapter");
    return names;
  }

  // The configuration of the merged model, for a head of `outputs` rows.
  Json merged_config(const std::string& kind, std::int64_t outputs,
                     const std::vector<std::string>& labels) {
    AdapterNotes notes;
    notes.task_kind = kind;
    notes.labels = labels;
    tensors_[saved_name("classifier", "weight")] =
        view_of(std::span(head_).first(static_cast<std::size_t>(4 * outputs)), {outputs, 4});
    EXPECT_TRUE(write_adapter(adapter_, lora_, tensors_, notes));

    const auto merged = merge();

    EXPECT_TRUE(merged) << merged.error().message;
    const auto text = read_file(merged_ + "/config.json");
    std::filesystem::remove_all(merged_);
    return *parse_json(*text);
  }

  const std::string kQuery = "bert.encoder.layer.0.attention.self.query";
  const TempFolder at_{"merge"};
  const std::string model_ = at_.path() + "/model", adapter_ = at_.path() + "/adapter",
                    merged_ = at_.path() + "/merged";
  std::vector<float> weight_ = std::vector<float>(16, 1), a_ = std::vector<float>(8, 1),
                     b_ = std::vector<float>(8, 1), head_ = std::vector<float>(16, 1);
  PeftConfig lora_{};
  TensorMap tensors_{};
};
using MergedConfig = Merging;

// transformers builds a head of two outputs where the configuration says nothing.
TEST_F(MergedConfig, OfARegressionSaysThatItsHeadHasOneOutput) {
  const Json config = merged_config("regress", 1, {});

  EXPECT_EQ(config["num_labels"], 1);
  EXPECT_EQ(config["id2label"], (Json{{"0", "LABEL_0"}}));
  EXPECT_EQ(config["problem_type"], "regression");
  EXPECT_EQ(config["architectures"], Json::array({"BertForSequenceClassification"}));
}

TEST_F(MergedConfig, OfLabelsNamesThemAndSaysWhetherARowMayHaveMany) {
  const Json one = merged_config("classify", 2, {"no", "yes"});
  const Json many = merged_config("multi_label", 3, {"a", "b", "c"});

  EXPECT_EQ(one["id2label"], (Json{{"0", "no"}, {"1", "yes"}}));
  EXPECT_EQ(one["problem_type"], "single_label_classification");
  EXPECT_EQ(many["label2id"], (Json{{"a", 0}, {"b", 1}, {"c", 2}}));
  EXPECT_EQ(many["problem_type"], "multi_label_classification");
}

TEST_F(Merging, WhatCannotBeMergedIsRefusedByNameAndLeavesNothing) {
  const auto refusal = [&](const PeftConfig& config, const TensorMap& tensors) {
    EXPECT_TRUE(make_folders(adapter_));
    EXPECT_TRUE(write_file(adapter_ + "/adapter_config.json", peft_config_text(config)));
    EXPECT_TRUE(write_safetensors(adapter_ + "/adapter_model.safetensors", tensors));
    const auto merged = merge();
    return merged ? "merged" : merged.error().message;
  };
  PeftConfig full;
  full.kind = "full";
  const auto scalar = view_of(std::span(head_).first(1), {});
  auto with_scalar_head = tensors_;
  with_scalar_head[saved_name("classifier", "weight")] = scalar;

  const std::string unknown = refusal(full, {{"x", scalar}});
  const std::string scalar_head = refusal(lora_, with_scalar_head);
  EXPECT_TRUE(write_safetensors(model_ + "/model.safetensors", {{kQuery + ".weight", scalar}}));
  const std::string scalar_weight = refusal(lora_, tensors_);

  EXPECT_THAT(unknown, HasSubstr("tensor x does not begin with base_model.model."));
  EXPECT_THAT(scalar_head, HasSubstr("classifier.weight is no matrix but []"));
  EXPECT_THAT(scalar_weight, HasSubstr("whose weight is no matrix but []"));
  EXPECT_THAT(left(), testing::IsEmpty());
}

TEST_F(Merging, AFolderThatCannotBeMadeIsToldAndNothingIsThrown) {
  ASSERT_TRUE(write_adapter(adapter_, lora_, tensors_, {}));

  const auto merged = merge_adapter({model_, adapter_, at_.path() + "/" + std::string(300, 'a')});

  ASSERT_FALSE(merged);
  EXPECT_THAT(merged.error().message, HasSubstr("File name too long"));
}

TEST_F(Merging, AFullDiskLeavesNothingBehind) {
  ASSERT_TRUE(write_adapter(adapter_, lora_, tensors_, {}));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);

  const auto merged = merge();

  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, previous);
  ASSERT_FALSE(merged);
  EXPECT_THAT(merged.error().message, HasSubstr("cannot write"));
  EXPECT_THAT(left(), testing::IsEmpty());
}

}  // namespace
}  // namespace ymir
