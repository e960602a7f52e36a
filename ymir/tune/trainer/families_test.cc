// Every family and kind of task from files to files: trained in a session, stopped and resumed to
// the same bits, exported, evaluated from the export, merged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/base/json.h"
#include "ymir/tune/merge.h"
#include "ymir/tune/trainer/tiny_models.h"
#include "ymir/tune/worker.h"

namespace ymir {
namespace {

using testing::bytes_of;
using testing::family_spec;
using testing::hear;
using testing::Heard;
using testing::resumed;
using testing::tensors_of;
using testing::tiny_run;
using testing::tiny_session;
using testing::tiny_task;
using testing::with_stops;
using testing::Workspace;

Result<std::map<std::string, double>> evaluated(Session& session, const JobSpec& spec,
                                                const std::string& model,
                                                const std::string& adapter) {
  EvaluateRequest request;
  request.model = model;
  request.adapter = adapter;
  request.data = spec.data;
  return session.evaluate(request);
}

class FamilyJob : public ::testing::TestWithParam<std::pair<const char*, bool>> {
 protected:
  JobSpec spec() const { return family_spec(at, GetParam().first, GetParam().second); }
  std::string judged() const { return GetParam().second ? "loss" : "accuracy"; }
  const Workspace at;
  const std::unique_ptr<Session> session = tiny_session(at);
};

TEST_P(FamilyJob, LearnsIsExportedMergedAndEndsBitEqualAfterStops) {
  const Heard heard = hear(*session, tiny_run({tiny_task(at, spec(), 1)}, 1));

  const auto finished = heard.last<JobFinished>();
  ASSERT_EQ(finished.outcome, Outcome::kSucceeded);
  EXPECT_LT(heard.steps.back().loss, 0.8 * heard.steps.front().loss);
  EXPECT_EQ(with_stops(*session, tiny_task(at, spec(), 2), {7, 6, 11}),
            tensors_of(heard.checkpoint(1)));
  const auto again = evaluated(*session, spec(), spec().model, finished.adapter);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->at(judged()), finished.metrics.at(judged()));
  const auto merged = merge_adapter({spec().model, finished.adapter, at.path("merged")});
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->num_changed, GetParam().second ? 8 : 4);  // modules of two layers
  const auto alone = evaluated(*session, spec(), at.path("merged"), "");
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_NEAR(alone->at("loss"), again->at("loss"), 1e-3);
  if (std::string(GetParam().first) == "llama") return;  // has an output layer: a language model
  const auto bare = evaluated(*session, spec(), spec().model, "");
  ASSERT_FALSE(bare);
  EXPECT_THAT(bare.error().message, ::testing::HasSubstr("has no head of its own"));
  EXPECT_THAT(bare.error().message, ::testing::HasSubstr("give --adapter"));
}

TEST_P(FamilyJob, TakesEveryMethod) {
  std::uint64_t job = 0;
  for (const char* method : {"lora", "dora", "bottleneck", "prefix", "bitfit", "top_k", "full"}) {
    JobSpec one = spec();
    one.method.kind = std::string(method) == "dora" ? "lora" : method;
    one.method.magnitude = std::string(method) == "dora";
    one.method.width = 8;
    one.method.length = 4;
    one.method.layers = 1;
    one.stop.max_epochs = 1;
    one.train.dropout = 0.1;
    one.method.dropout = one.method.kind == "lora" ? 0.2 : 0;

    const std::string whole = with_stops(*session, tiny_task(at, one, ++job), {});
    const std::string stopped = with_stops(*session, tiny_task(at, one, ++job), {3, 4});

    EXPECT_EQ(stopped, whole) << method;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyJob,
                         ::testing::Values(std::pair{"roberta", false},
                                           std::pair{"distilbert", false}, std::pair{"vit", false},
                                           std::pair{"llama", false}, std::pair{"llama", true}),
                         [](const auto& each) {
                           return std::string(each.param.first) +
                                  (each.param.second ? "Language" : "Classes");
                         });

TEST(LanguageJob, LearnsToAnswerAndSaysHowWell) {
  const Workspace at;
  const auto session = tiny_session(at);
  JobSpec spec = family_spec(at, "llama", true);
  spec.metrics = {"loss", "bleu", "exact_match", "perplexity"};
  spec.answer_length = 16;
  spec.method.kind = "full";
  spec.stop.max_epochs = 12;
  spec.evaluate_epochs = 12;

  const Heard heard = hear(*session, tiny_run({tiny_task(at, spec, 1)}, 1));

  const auto finished = heard.last<JobFinished>();
  EXPECT_GT(finished.metrics.at("exact_match"), 0.9);
  EXPECT_GT(finished.metrics.at("rouge_l"), 0.9);
  EXPECT_LT(finished.metrics.at("perplexity"), 1.5);
  EXPECT_TRUE(finished.metrics.contains("bleu"));  // 0: no answer has four words
  EvaluateRequest request;
  request.model = spec.model;
  request.adapter = finished.adapter;
  request.data = spec.data;
  request.metrics = {"exact_match"};
  request.predictions = at.path("predictions.jsonl");
  const auto again = session->evaluate(request);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->at("exact_match"), finished.metrics.at("exact_match"));
  const std::string lines = bytes_of(request.predictions);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 24);
  const Json first = Json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["label"], first["prediction"]);
}

TEST(LanguageJob, OnAnEncoderIsRefusedWithTheReason) {
  const Workspace at;
  const auto session = tiny_session(at);
  JobSpec spec = family_spec(at, "llama", true);
  spec.model = at.path("model-bert");
  testing::write_tiny_family("bert", spec.model);
  spec.data.prompt_template = "chatml";  // needs no end-of-text token
  spec.data.max_length = 64;

  const auto result = session->run(tiny_run({tiny_task(at, spec, 1)}, 1),
                                   RunReports{[](auto&) {}, {}}, [] { return StopWish::kGoOn; });

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("no output layer"));
}

// Rows whose labels are the words of the text that are named after a label.
void write_label_sets(const std::string& path, int rows, std::uint64_t seed, bool columns) {
  Rng rng(seed);
  std::string text = columns ? "text,w0,w1,w2\n" : "text,label\n";
  for (int row = 0; row < rows; ++row) {
    std::vector<bool> has;
    std::string words, joined, flags;
    for (int label = 0; label < 3; ++label) {
      has.push_back(rng.below(2) == 1);
      words += (label == 0 ? "w" : " w") +
               std::to_string(has.back() ? static_cast<std::uint64_t>(label) : 10 + rng.below(20));
      if (has.back()) joined += (joined.empty() ? "w" : ";w") + std::to_string(label);
      flags += has.back() ? ",1" : ",0";
    }
    text += words + (columns ? flags : "," + joined) + "\n";
  }
  ASSERT_TRUE(write_file(path, text));
}

class MultiLabelJob : public ::testing::TestWithParam<bool> {};

TEST_P(MultiLabelJob, LearnsSetsOfLabelsAndTellsThemByName) {
  const Workspace at;
  const auto session = tiny_session(at);
  JobSpec spec = testing::tiny_spec(at);
  write_label_sets(at.path("sets.csv"), 200, 7, GetParam());
  write_label_sets(at.path("sets-validation.csv"), 60, 8, GetParam());
  spec.kind = TaskKind::kMultiLabel;
  spec.data.train = {at.path("sets.csv")};
  spec.data.validation = {at.path("sets-validation.csv")};
  spec.data.label_separator = ";";
  if (GetParam()) spec.data.label_columns = {"w0", "w1", "w2"};
  spec.stop.max_epochs = 12;

  const Heard heard = hear(*session, tiny_run({tiny_task(at, spec, 1)}, 1));

  const auto finished = heard.last<JobFinished>();
  EXPECT_GT(finished.metrics.at("f1_micro"), 0.9);
  EXPECT_GT(finished.metrics.at("f1_macro"), 0.9);
  EXPECT_GT(finished.metrics.at("accuracy"), 0.8);
  EXPECT_EQ(with_stops(*session, tiny_task(at, spec, 2), {20, 5, 5}),
            tensors_of(heard.checkpoint(1)));
  EvaluateRequest request;
  request.model = spec.model;
  request.adapter = finished.adapter;
  request.data = spec.data;
  request.predictions = at.path("predictions.jsonl");
  const auto again = session->evaluate(request);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->at("accuracy"), finished.metrics.at("accuracy"));
  for (const auto& line : {bytes_of(request.predictions)}) {
    const Json first = Json::parse(line.substr(0, line.find('\n')));
    EXPECT_TRUE(first["label"].is_array() && first["prediction"].is_array());
    EXPECT_EQ(first["scores"].size(), 3u);
  }
}
INSTANTIATE_TEST_SUITE_P(Families, MultiLabelJob, ::testing::Bool(), [](const auto& each) {
  return std::string(each.param ? "ByColumns" : "BySeparator");
});

TEST(ProfileRun, OfAnyKindEndsWithWhatCanBeMeasured) {
  const Workspace at;
  const auto session = tiny_session(at);
  std::uint64_t job = 0;
  for (const auto& [family, language] : {std::pair{"llama", true}, {"vit", false}}) {
    StartRun order = tiny_run({tiny_task(at, family_spec(at, family, language), ++job)}, job);
    order.profile = order.want_vector = true;
    order.profile_steps = 8;

    const Heard heard = hear(*session, order);

    const auto profiled = heard.last<ProfileFinished>();
    EXPECT_FALSE(profiled.profile.losses.empty());
    EXPECT_FALSE(profiled.profile.step_times.empty());
    EXPECT_EQ(profiled.profile.vector.key.empty(), language);
  }
}

}  // namespace
}  // namespace ymir
