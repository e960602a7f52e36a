#include "ymir/tune/data/dataset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <set>

#include "ymir/base/file.h"
#include "ymir/tune/data/task_folder.h"

namespace ymir {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TextTask : public testing::TaskFolder {
 protected:
  void SetUp() override {
    TaskFolder::SetUp();
    request.data.val_fraction = 0;
  }
};

TEST_F(TextTask, GivesTokenisedRowsWithClassesInTheOrderOfTheFile) {
  request.data.train = {
      write("train.csv", "text,label\nthe of,pos\nand,neg\nto in a,pos\nin,neg\n")};
  request.data.validation = {write("val.csv", "text,label\nis that,neg\nwas on,pos\n")};

  const TaskData task = load();

  EXPECT_TRUE(task.report.usable()) << task.report.text();
  EXPECT_THAT(task.labels, ElementsAre("neg", "pos"));
  EXPECT_THAT(task.train.classes, ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(task.validation.classes, ElementsAre(0, 1));
  std::vector<std::int32_t> ids;
  task.train.append_ids(2, ids);
  EXPECT_EQ(ids, tokenizer.encode("to in a").ids);
  EXPECT_EQ(task.max_length, 16);
  EXPECT_EQ(task.train.place(2), folder + "/train.csv:4");
}

TEST_F(TextTask, ALabelThatTrainingDoesNotKnowIsToldWithPlaceAndNearestName) {
  request.data.train = {
      write("train.csv", "text,label\na,positive\nof,negative\nto,negative\non,positive\n")};
  request.data.validation = {write("val.csv", "text,label\nin,positive\n\"the\nby\",postive\n")};

  const TaskData task = load();

  EXPECT_THAT(short_lines(task.report.faults),
              ElementsAre("val.csv:4:5: label \"postive\" is not one of 2 known labels (nearest: "
                          "\"positive\")"));
  EXPECT_FALSE(task.report.usable());
}

TEST_F(TextTask, DeclaredLabelsAreMatchedByNameOrByPlace) {
  request.labels = {"negative", "positive"};
  request.data.train = {write("a.csv", "text,label\nthe,1\nof,0\nand,1\nto,0\n")};
  const TaskData by_place = load();
  request.data.train = {write("b.csv", "text,label\nthe,positive\nof,negative\nto,4\n")};
  const TaskData by_name = load();

  EXPECT_THAT(by_place.train.classes, ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(by_name.train.classes, ElementsAre(1, 0));
  EXPECT_THAT(short_lines(by_name.report.faults),
              ElementsAre("b.csv:4:4: label \"4\" is not one of 2 known labels (negative, "
                          "positive)"));
}

TEST_F(TextTask, TextsInPlaceOfLabelsAreToldAtOnceHoweverManyThereAre) {
  // Swapped columns: every row has a label of its own, and no label of the validation is known.
  std::string train = "text,label\n", validation = train;
  for (int i = 0; i < 50'000; ++i) {
    train += "a,the text of row " + std::to_string(i) + "\n";
    validation += "a,another text " + std::to_string(i) + "\n";
  }
  request.data.train = {write("train.csv", train)};
  request.data.validation = {write("val.csv", validation)};
  const auto begin = std::clock();

  const TaskData task = load();

  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_THAT(task.report.faults.messages(),
              Contains(HasSubstr("50000 labels, at most 5000: is the right column mapped?")));
  EXPECT_THAT(task.report.faults.messages(), Contains(HasSubstr("49980 more: unknown label")));
  EXPECT_LT(seconds, 30)
      << "of the processor; looking through all labels for each row takes minutes";
}

TEST_F(TextTask, WithoutATrainingRowTheOtherRowsAreNotBlamed) {
  request.data.train = {write("train.csv", "text,label\n")};
  request.data.validation = {write("val.csv", "text,label\nin,positive\n")};

  const TaskData task = load();

  EXPECT_THAT(short_lines(task.report.faults),
              ElementsAre("train.csv: holds a header and no rows"));
}

TEST_F(TextTask, WholeNumbersSortAsNumbers) {
  request.data.train = {write("a.csv", "text,label\nthe,10\nof,2\nand,10\nto,02\n")};

  const TaskData task = load();

  EXPECT_THAT(task.labels, ElementsAre("2", "10"));
  EXPECT_THAT(task.train.classes, ElementsAre(1, 0, 1, 0));
}

TEST_F(TextTask, OneClassOrNoRowsIsAFault) {
  request.data.train = {write("one.csv", "text,label\nthe,x\nof,x\n")};
  EXPECT_THAT(short_lines(load().report.faults),
              ElementsAre("one.csv: all rows have the label \"x\", a classifier needs two"));

  request.data.train = {write("none.csv", "text,label\n")};
  EXPECT_THAT(short_lines(load().report.faults),
              ElementsAre("none.csv: holds a header and no rows"));

  request.data.train = {write("empty.csv", "")};
  EXPECT_THAT(short_lines(load().report.faults), ElementsAre("empty.csv: holds no rows"));
}

TEST_F(TextTask, AllKindsOfFaultsAreToldTogether) {
  request.labels = {"x", "y"};
  request.data.train = {write("t.csv", "text,label\nthe,x\nof\n ,y\non,z\nto,y\n")};

  EXPECT_THAT(short_lines(load().report.faults),
              ElementsAre("t.csv:3: 1 fields, expected 2 as in the header",
                          "t.csv:4:1: the text is empty (data.empty: drop leaves such rows out)",
                          "t.csv:5:4: label \"z\" is not one of 2 known labels (nearest: \"x\")"));
}

TEST_F(TextTask, DuplicatesAndOverlapAreToldWithBothPlaces) {
  request.data.train = {
      write("t.csv", "text,label\nThe of!,x\nthe  OF,x\nThe of.,y\nand,y\nto,x\n")};
  request.data.validation = {write("v.csv", "text,label\nAND ,y\nin,x\n")};

  const TaskData task = load();

  EXPECT_TRUE(task.report.usable());
  EXPECT_EQ(task.report.parts[0].num_duplicates, 2);
  EXPECT_EQ(task.report.num_overlapping, 1);
  EXPECT_THAT(
      short_lines(task.report.warnings),
      ElementsAre("t.csv:3: same text as t.csv:2", "t.csv:4: same text as t.csv:2, another label",
                  "v.csv:2: validation row is trained on too (t.csv:5): remove it from one of "
                  "the two"));
}

TEST_F(TextTask, TheSplitKeepsDuplicatesTogetherAndStaysWhenRowsAreAdded) {
  request.data.val_fraction = 0.3;
  std::string rows = "text,label\n";
  for (int i = 0; i < 200; ++i) {
    const std::string text = "the " + std::to_string(i % 150);
    rows += text + (i % 2 == 0 ? ",x\n" : " !,y\n");
  }
  request.data.train = {write("t.csv", rows)};
  const TaskData before = load();
  request.data.train = {write("u.csv", rows + "more,x\nand more,y\n")};
  const TaskData after = load();

  const auto hashes = [](const RowSet& set) {
    std::set<std::uint64_t> result;
    for (std::size_t i = 0; i < set.size(); ++i) result.insert(set.hash(i));
    return result;
  };
  EXPECT_EQ(before.train.size() + before.validation.size(), 200u);
  EXPECT_NEAR(static_cast<double>(before.validation.size()), 60, 30);
  EXPECT_EQ(before.report.num_overlapping, 0);
  for (const std::uint64_t hash : hashes(before.validation))
    EXPECT_TRUE(hashes(after.validation).contains(hash));
  EXPECT_NE(before.hash, after.hash);
}

TEST_F(TextTask, AFractionOfAFewRowsLeavesSomeToTrainOn) {
  request.data.val_fraction = 0.5;
  int taken = 0;
  for (int set = 0; set < 100; ++set) {
    std::string rows = "text,label\n";
    for (int row = 0; row < 4; ++row) rows += fmt::format("the {} {},{}\n", set, row, row % 2);
    request.data.train = {write("t.csv", rows)};

    const TaskData task = load();

    EXPECT_GE(task.train.size(), 1u) << set;
    EXPECT_EQ(task.train.size() + task.validation.size(), 4u) << set;
    taken += static_cast<int>(task.validation.size());
  }
  EXPECT_NEAR(taken, 200, 40);
}

TEST_F(TextTask, TheLengthLimitIsChosenFromTheRowsAndCutRowsAreCounted) {
  std::string rows = "text,label\n";
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (int n = i < 2 ? 60 : 20; n > 0; --n) text += "the ";
    rows += text + (i % 2 == 0 ? ",x\n" : ",y\n");
  }
  request.data.train = {write("t.csv", rows)};
  const TaskData automatic = load();
  request.data.max_length = 12;
  const TaskData fixed = load();
  request.data.overlong = "drop";
  request.data.max_length = 32;
  const TaskData dropped = load();
  request.data.overlong = "error";
  const TaskData refused = load();

  EXPECT_EQ(automatic.max_length, 32);
  EXPECT_EQ(automatic.report.parts[0].num_cut, 2);
  EXPECT_EQ(automatic.report.parts[0].longest, 62);
  EXPECT_EQ(automatic.train.length(0), 32u);
  EXPECT_EQ(fixed.report.parts[0].num_cut, 200);
  EXPECT_EQ(fixed.train.length(5), 12u);
  EXPECT_EQ(dropped.report.parts[0].num_dropped, 2);
  EXPECT_EQ(dropped.train.size(), 198u);
  EXPECT_THAT(short_lines(refused.report.faults),
              Contains("t.csv:2: 62 tokens, 30 more than max_length"));
}

TEST_F(TextTask, ScoresMustBeFiniteInRangeAndNotAllEqual) {
  request.kind = TaskKind::kRegress;
  request.range = {0, 5};
  request.data.columns = {{"text", "0"}, {"text_pair", "1"}, {"label", "2"}};
  request.data.train = {write("t.csv", "a,of,5.0\nthe,by,abc\nto,in,7\non,is,nan\nas,at,0.25\n")};
  const TaskData task = load();
  request.data.train = {write("u.csv", "a,of,2\nthe,by,2.0\n")};
  const TaskData equal = load();

  EXPECT_THAT(short_lines(task.report.faults),
              ElementsAre("t.csv:2:8: the label \"abc\" is not a finite number",
                          "t.csv:4:7: the label \"nan\" is not a finite number",
                          "t.csv:3:7: score 7 is outside the range [0, 5]"));
  EXPECT_EQ(task.train.size(), 2u);
  EXPECT_EQ(task.train.score(1), 0.25);
  std::vector<std::int32_t> types;
  task.train.append_type_ids(0, types);
  EXPECT_THAT(types, ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(short_lines(equal.report.faults), ElementsAre("u.csv: all rows have the score 2"));
}

TEST_F(TextTask, TheCacheGivesTheSameDataWithoutReadingRowsAgain) {
  request.data.train = {write("t.csv", "text,label\nthe,x\nof,y\nand,x\nto,y\n")};
  const TaskData without = load();
  request.cache = folder + "/cache";
  const TaskData built = load();
  const TaskData mapped = load();

  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder + "/cache/data"), {}), 2)
      << "one store and its lock";
  for (const TaskData* task : {&built, &mapped}) {
    EXPECT_EQ(task->hash, without.hash);
    EXPECT_EQ(task->train.classes, without.train.classes);
    EXPECT_EQ(task->report.text(), without.report.text());
  }
}

TEST_F(TextTask, FaultyRowsAreNeverCached) {
  request.cache = folder + "/cache";
  request.data.train = {write("t.csv", "text,label\nthe,x\nof,y\nand\n")};

  const TaskData first = load();
  const TaskData second = load();

  EXPECT_EQ(first.report.faults.messages(), second.report.faults.messages());
  EXPECT_FALSE(second.report.usable());
}

TEST_F(TextTask, WrongSettingsAreRefusedByName) {
  request.data.train = {write("t.csv", "text,label\nthe,x\n")};
  request.data.max_length = 600;
  EXPECT_EQ(refusal(), "data.max_length 600 is more than the model's 64");
  request.data.max_length = 2;
  EXPECT_THAT(refusal(), HasSubstr("no room for text"));
  request.data.max_length = 0;
  request.data.label = "number";
  EXPECT_THAT(refusal(), HasSubstr("data.label \"number\" is not one of"));
  request.data.label = "auto";
  request.labels = {"a", "a"};
  EXPECT_THAT(refusal(), HasSubstr("task.labels names \"a\" twice"));
  request.labels = {};
  request.data.train = {folder + "/none.csv"};
  EXPECT_THAT(refusal(), HasSubstr("none.csv"));
}

TEST_F(TextTask, EvaluationRowsKeepTheTrainedLabels) {
  request.labels = {"y", "x"};
  const auto file = write("e.csv", "text,label\nthe,x\nof,y\nand,q\n");

  const auto data = load_evaluation_data(request, {file}, 8, &tokenizer);

  ASSERT_TRUE(data) << data.error().message;
  EXPECT_THAT(data->rows.classes, ElementsAre(1, 0));
  EXPECT_THAT(short_lines(data->report.faults), ElementsAre(HasSubstr("e.csv:4:5: label \"q\"")));
}

TEST_F(TextTask, FactsCountTheStepsOfTheJob) {
  request.data.train = {write("t.csv", "text,label\nthe,x\nof,y\nand,x\nto,y\nin,x\n")};
  JobSpec job;
  job.train.batch = 2;
  job.stop.max_epochs = 4;

  const DataFacts facts = data_facts(load(), job, "b");

  EXPECT_EQ(facts.train_rows, 5);
  EXPECT_EQ(facts.steps_per_epoch, 3);
  EXPECT_EQ(facts.total_steps, 12);
  EXPECT_EQ(facts.num_labels, 2);
  EXPECT_EQ(facts.backbone, "b");
}

TEST(AutomaticMaxLength, IsTheLeastMultipleOfSixteenThatCutsAtMostOnePercent) {
  std::vector<int> lengths(1000, 16);
  EXPECT_EQ(automatic_max_length(lengths, 512), 16);
  std::fill_n(lengths.begin(), 10, 100);
  EXPECT_EQ(automatic_max_length(lengths, 512), 16);
  lengths[10] = 17;
  EXPECT_EQ(automatic_max_length(lengths, 512), 32);
  EXPECT_EQ(automatic_max_length(std::vector<int>(5, 900), 512), 512);
  EXPECT_EQ(automatic_max_length({}, 512), 16);
}

TEST(ContentHash, SeesLettersAndDigitsOnly) {
  EXPECT_EQ(content_hash("A b, C!", ""), content_hash("abc", ""));
  EXPECT_NE(content_hash("ab", "c"), content_hash("a", "bc"));
  EXPECT_NE(content_hash("!!", ""), content_hash("??", ""));
  EXPECT_EQ(content_hash("\xC3\x89t\xC3\xA9", ""), content_hash("\xC3\xA9T\xC3\x89", ""));
}

TEST_F(TextTask, TheSameContentElsewhereIsNotTokenisedAgain) {
  const std::string rows = "text,label\nthe of,a\nand,b\nto in,a\n";
  request.cache = folder + "/cache";
  request.data.train = {write("one.csv", rows)};
  const TaskData first = load();
  request.data.train = {write("two.csv", rows)};

  const TaskData second = load();

  EXPECT_EQ(first.hash, second.hash);
  EXPECT_THAT(second.train.place(0), ::testing::EndsWith("two.csv:2"));
  const auto is_store = [](const auto& entry) { return entry.path().extension() == ".ymirdata"; };
  EXPECT_EQ(
      std::ranges::count_if(std::filesystem::directory_iterator(folder + "/cache/data"), is_store),
      1);
}

class LanguageFolder : public TextTask {
 protected:
  void SetUp() override {
    TextTask::SetUp();
    auto parsed = Tokenizer::parse(*read_file(YMIR_SOURCE_DIR "/tests/reference/bpe/llama3.json"),
                                   R"({"eos_token": "</s>"})");
    ASSERT_TRUE(parsed) << parsed.error().message;
    tokenizer = *std::move(parsed);
    request.kind = TaskKind::kLanguageModel;
  }
};

TEST_F(LanguageFolder, ConversationsAreLearntWhereTheAssistantSpeaks) {
  request.data.format = "alpaca";
  request.data.train = {write("t.jsonl",
                              "{\"instruction\": \"the time\", \"output\": \"man\"}\n"
                              "{\"instruction\": \"of\", \"output\": \"\"}\n")};
  request.data.prompt_template = "plain";

  const TaskData task = load();

  ASSERT_EQ(task.train.size(), 1u);
  std::vector<std::int32_t> ids, trained;
  task.train.append_ids(0, ids);
  task.train.append_trained(0, trained);
  EXPECT_EQ(ids.size(), trained.size());
  EXPECT_EQ(ids.back(), tokenizer.end_token());
  EXPECT_EQ(trained.front(), 0);
  EXPECT_EQ(trained.back(), 1);
  EXPECT_THAT(short_lines(task.report.faults), ElementsAre("t.jsonl:2:1: an answer is empty"));
  EXPECT_THAT(task.labels, IsEmpty());
  EXPECT_EQ(task.report.parts[0].num_trained, std::ranges::count(trained, 1));
}

TEST_F(LanguageFolder, PlainTextIsLearntWholeAndEnds) {
  request.data.train = {write("t.csv", "text\nthe time\nthe man of\nthe time\n")};

  const TaskData task = load();

  ASSERT_TRUE(task.report.usable()) << task.report.text();
  std::vector<std::int32_t> trained;
  task.train.append_trained(1, trained);
  EXPECT_EQ(std::ranges::count(trained, 0), 1);  // the token that begins every text
  EXPECT_EQ(task.report.parts[0].num_duplicates, 1);
  EXPECT_THAT(task.report.text(), HasSubstr("tokens to learn"));
}

TEST_F(LanguageFolder, ARowWhoseAnswerIsCutAwayIsLeftOutAndTold) {
  request.data.format = "alpaca";
  request.data.prompt_template = "plain";
  request.data.max_length = 8;
  request.data.train = {write(
      "t.jsonl",
      "{\"instruction\": \"the man of the time and the man of the time\", \"output\": \"a\"}\n"
      "{\"instruction\": \"the\", \"output\": \"man\"}\n")};

  const TaskData task = load();

  EXPECT_EQ(task.train.size(), 1u);
  EXPECT_THAT(short_lines(task.report.warnings),
              Contains(HasSubstr("t.jsonl:1: no token of an answer is left")));
}

TEST_F(LanguageFolder, ConversationsAreOnlyForLanguageModels) {
  request.kind = TaskKind::kClassify;
  request.data.format = "messages";
  request.data.train = {write("t.jsonl", "{}\n")};

  EXPECT_THAT(refusal(), HasSubstr("data.format messages is for task.kind lm"));
}

}  // namespace
}  // namespace ymir
