#include "ymir/tune/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"
#include "ymir/tune/checkpoint/peft_files.h"

namespace ymir {
namespace {

// The configuration of the merged model, for a head of `outputs` rows.
Json merged_config(const std::string& kind, std::int64_t outputs,
                   const std::vector<std::string>& labels) {
  const TempFolder at{"merge"};
  const std::string model = at.path() + "/model",
                    query = "bert.encoder.layer.0.attention.self.query";
  const std::vector<float> weight(16, 1), a(8, 1), b(8, 1), head(4 * 4, 1);
  const Json config = {
      {"model_type", "bert"},   {"architectures", {"BertModel"}}, {"vocab_size", 30},
      {"hidden_size", 4},       {"num_hidden_layers", 1},         {"num_attention_heads", 2},
      {"intermediate_size", 8}, {"hidden_act", "gelu"},           {"max_position_embeddings", 16}};
  EXPECT_TRUE(make_folders(model));
  EXPECT_TRUE(write_file(model + "/config.json", config.dump()));
  EXPECT_TRUE(write_safetensors(model + "/model.safetensors",
                                {{query + ".weight", view_of(weight, {4, 4})}}));
  PeftConfig lora;
  lora.rank = 2;
  lora.targets = {"query"};
  lora.modules_to_save = {"classifier"};
  AdapterNotes notes;
  notes.task_kind = kind;
  notes.labels = labels;
  EXPECT_TRUE(write_adapter(
      at.path() + "/adapter", lora,
      {{lora_name(query, 'A'), view_of(a, {2, 4})},
       {lora_name(query, 'B'), view_of(b, {4, 2})},
       {saved_name("classifier", "weight"),
        view_of(std::span(head).first(static_cast<std::size_t>(4 * outputs)), {outputs, 4})}},
      notes));

  const auto merged = merge_adapter({model, at.path() + "/adapter", at.path() + "/merged"});

  EXPECT_TRUE(merged) << merged.error().message;
  return *parse_json(*read_file(at.path() + "/merged/config.json"));
}

// transformers builds a head of two outputs where the configuration says nothing.
TEST(MergedConfig, OfARegressionSaysThatItsHeadHasOneOutput) {
  const Json config = merged_config("regress", 1, {});

  EXPECT_EQ(config["num_labels"], 1);
  EXPECT_EQ(config["id2label"], (Json{{"0", "LABEL_0"}}));
  EXPECT_EQ(config["problem_type"], "regression");
  EXPECT_EQ(config["architectures"], Json::array({"BertForSequenceClassification"}));
}

TEST(MergedConfig, OfLabelsNamesThemAndSaysWhetherARowMayHaveMany) {
  const Json one = merged_config("classify", 2, {"no", "yes"});
  const Json many = merged_config("multi_label", 3, {"a", "b", "c"});

  EXPECT_EQ(one["id2label"], (Json{{"0", "no"}, {"1", "yes"}}));
  EXPECT_EQ(one["problem_type"], "single_label_classification");
  EXPECT_EQ(many["label2id"], (Json{{"a", 0}, {"b", 1}, {"c", 2}}));
  EXPECT_EQ(many["problem_type"], "multi_label_classification");
}

}  // namespace
}  // namespace ymir
