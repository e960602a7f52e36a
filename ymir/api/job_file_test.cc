#include "ymir/api/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ymir/base/file.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

JobFileOptions options() {
  JobFileOptions made;
  made.file = "job.yaml";
  made.folder = "/home/user";
  made.owner = "user-a";
  made.trust_domains = {"team-a"};
  made.num_slots = 4;
  made.now = from_seconds(1'700'000'000);
  return made;
}

constexpr const char* kSmall =
    "backbone: {model: minilm}\n"
    "task: {kind: classify}\n"
    "data: {train: train.csv}\n";

std::vector<std::string> faults_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const JobFault& fault : read_job_file(text, options()).faults)
    lines.push_back(to_string(fault, "job.yaml"));
  return lines;
}

struct BadFile {
  const char* name = "";
  std::string text{};
  std::vector<std::string> faults{};
};
void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.name; }

class JobFileFaults : public ::testing::TestWithParam<BadFile> {};

TEST_P(JobFileFaults, AreToldWithPlaceKeyRemedyAndCode) {
  const auto faults = faults_of(GetParam().text);

  EXPECT_THAT(faults, ElementsAreArray(GetParam().faults));
}

std::string small_and(const std::string& more) { return kSmall + more; }

constexpr const char* kTopLevel =
    "unknown key; known here: ymir, name, description, tags, backbone, task, data, method, train, "
    "stop, target, evaluate, priority, deadline, resources, sharing, checkpoint, seed "
    "[unknown_key]";

std::vector<BadFile> yaml_faults() {
  return {
      {"Empty", "", {"job.yaml:1:1: the file is empty [empty]"}},
      {"NotAMap", "- a\n", {"job.yaml:1:1: expected a map of keys, e.g. \"backbone:\" [type]"}},
      {"Tab",
       "task:\n\tkind: classify\n",
       {"job.yaml:2:1: a tab; write blanks (in a quoted text: \"\\t\") [yaml_tab]"}},
      {"NotUtf8", "name: \"é\xff\"\n", {"job.yaml:1:9: not UTF-8 [encoding]"}},
      {"SecondDocument",
       small_and("---\nname: b\n"),
       {"job.yaml:4:1: a second document; one job, one file [yaml_documents]"}},
      {"AnchorAndAlias",
       small_and("train: {batch: &b 16}\nseed: *b\n"),
       {"job.yaml:4:16: anchors (&name) are not allowed [yaml_anchor]",
        "job.yaml:5:1: seed: has no value; leave the key out or give one [type]",
        "job.yaml:5:7: aliases (*name) are not allowed; write the value again [yaml_alias]"}},
      {"MergeKey",
       small_and("train: {<<: {batch: 16}}\n"),
       {"job.yaml:4:9: merge keys (<<) are not allowed; write the values [yaml_merge]"}},
      {"Tag",
       small_and("seed: !!int 3\n"),
       {"job.yaml:4:7: tags (!name) are not allowed [yaml_tag]"}},
      {"DuplicateKey",
       small_and("seed: 1\nseed: 2\n"),
       {"job.yaml:5:1: \"seed\" stands twice (first in line 4) [yaml_duplicate]"}},
      {"TooDeep",
       std::string(17, '[') + "a" + std::string(17, ']'),
       {"job.yaml:1:17: nested deeper than 16 levels [yaml_depth]"}},
      {"Unclosed",
       "data: {train: a\n",
       {"job.yaml:2:1: not YAML: end of map flow not found [yaml_syntax]"}},
      {"TooLarge",
       std::string(65'537, '#'),
       {"job.yaml:1:1: 65537 bytes, at most 65536 [too_large]"}},
  };
}

std::vector<BadFile> key_faults() {
  return {
      {"NothingRequiredThere",
       "name: a\n",
       {"job.yaml:1:1: backbone.model: is required [missing]",
        "job.yaml:1:1: task.kind: is required [missing]",
        "job.yaml:1:1: data.train: is required [missing]"}},
      {"RequiredInItsSection",
       "backbone: {model: m}\ntask: {kind: classify}\ndata: {format: csv}\n",
       {"job.yaml:3:1: data.train: is required [missing]"}},
      {"NearestKey",
       small_and("train: {bacth: 16}\n"),
       {"job.yaml:4:9: train.bacth: unknown key; did you mean \"batch\"? [unknown_key]"}},
      {"KeyOfAnotherSection",
       small_and("stop: {lr: 0.1}\n"),
       {"job.yaml:4:8: stop.lr: unknown key; \"lr\" belongs in \"train\" [unknown_key]"}},
      {"KeyOfTheTopLevel",
       small_and("train: {seed: 1}\n"),
       {"job.yaml:4:9: train.seed: unknown key; \"seed\" belongs at the top level [unknown_key]"}},
      {"UnknownSection",
       small_and("optimizer: {lr: 0.1}\n"),
       {std::string("job.yaml:4:1: optimizer: ") + kTopLevel}},
      {"UnknownKeyOfASection",
       small_and("target: {delimeter: 1}\n"),
       {"job.yaml:4:10: target.delimeter: unknown key; known here: metric, value [unknown_key]"}},
      {"DottedKey",
       small_and("train.lr: 0.1\n"),
       {"job.yaml:4:1: train.lr: unknown key; sections are nested (\"train:\", below it \"lr:\") "
        "[unknown_key]"}},
      {"SectionIsNoMap",
       small_and("train: fast\n"),
       {"job.yaml:4:8: train: expected a map of keys [type]"}},
      {"LaterKey",
       small_and("notify: [{hook: a}]\nresources: {pipeline: auto}\n"),
       {"job.yaml:4:1: notify: is not available in this version; leave it out [not_available]",
        "job.yaml:5:13: resources.pipeline: is not available in this version; leave it out "
        "[not_available]"}},
      {"LaterValue",
       small_and("train: {precision: fp16}\n"),
       {"job.yaml:4:20: train.precision: fp16 is not available in this version; available: auto, "
        "f32, bf16 [not_available]"}},
      {"KeysOfAnotherKind",
       "backbone: {model: m}\ntask: {kind: lm, labels: [a, b]}\n"
       "data: {train: a, label_separator: ;, format: folder}\n"
       "train: {head_start: fit}\n",
       {"job.yaml:2:26: task.labels: is for classify, multi_label, the kind is lm [either]",
        "job.yaml:3:35: data.label_separator: is for multi_label, the kind is lm [either]",
        "job.yaml:3:46: data.format: folder holds images, for classify; the kind is lm [either]",
        "job.yaml:4:21: train.head_start: fit is for classify and regress, the kind is lm "
        "[either]"}},
      {"KeysOfALanguageModel",
       "backbone: {model: m}\ntask: {kind: multi_label}\n"
       "data: {train: a, template: chatml, format: sharegpt, columns: {label: [a, b]},\n"
       "  label_separator: x}\n"
       "train: {loss_on: all}\nevaluate: {answer_length: 10}\n",
       {"job.yaml:3:28: data.template: is for lm, the kind is multi_label [either]",
        "job.yaml:3:44: data.format: sharegpt holds conversations, for lm; the kind is multi_label "
        "[either]",
        "job.yaml:4:20: data.label_separator: give label columns or a separator, not both [either]",
        "job.yaml:5:18: train.loss_on: is for lm, the kind is multi_label [either]",
        "job.yaml:6:27: evaluate.answer_length: is for lm, the kind is multi_label [either]"}},
      {"ColumnsOfLabelsOfOneLabel",
       "backbone: {model: m}\ntask: {kind: classify}\n"
       "data: {train: a, columns: {label: [a, b]}}\n",
       {"job.yaml:3:27: data.columns: a list of label columns is for multi_label, the kind is "
        "classify [either]"}},
      {"UnknownTemplate",
       "backbone: {model: m}\ntask: {kind: lm}\ndata: {train: a, template: chatlm}\n",
       {"job.yaml:3:28: data.template: chatlm is not supported; known: alpaca, chatml, llama2, "
        "llama3, vicuna, plain; did you mean \"chatml\"? [unknown_value]"}},
      {"MetricOfAnswers",
       small_and("evaluate: {metrics: [bleu, accuracy]}\n"),
       {"job.yaml:4:21: evaluate.metrics: bleu is for lm; for classify: accuracy, f1, f1_macro, "
        "f1_micro, mcc, loss [metric]"}},
      {"NewerVersion",
       small_and("ymir: 2\n"),
       {"job.yaml:4:7: ymir: version 2 is newer than this program (knows 1) [version]"}},
      {"KeyThatSpeaksToTheTerminal",
       small_and("\"\\e[31mred\": 1\n"),
       {std::string("job.yaml:4:1: \\x1B[31mred: ") + kTopLevel}},
      {"NullValue",
       small_and("seed:\n"),
       {"job.yaml:4:1: seed: has no value; leave the key out or give one [type]"}},
  };
}

std::vector<BadFile> value_faults() {
  return {
      {"WrongTypes",
       small_and("sharing: {allow: yes, give: \"true\"}\ntrain: {batch: \"16\", lr: fast}\n"
                 "seed: 1.5\n"),
       {"job.yaml:4:18: sharing.allow: write true or false, not \"yes\" [type]",
        "job.yaml:4:29: sharing.give: expected true or false, found the text \"true\"; remove the "
        "quotes [type]",
        "job.yaml:5:16: train.batch: expected a whole number, found the text \"16\"; remove the "
        "quotes [type]",
        "job.yaml:5:26: train.lr: expected a number, found \"fast\" [type]",
        "job.yaml:6:7: seed: expected a whole number, found \"1.5\" [type]"}},
      {"Ranges",
       small_and("train: {lr: 0.0, batch: 0, warmup: 1.5, clip: .inf}\nmethod: {rank: 257}\n"),
       {"job.yaml:4:13: train.lr: 0.0 must be > 0 and < 1 [range]",
        "job.yaml:4:25: train.batch: 0 must be 1 to 65536 [range]",
        "job.yaml:4:36: train.warmup: 1.5 must be a fraction < 1 or whole steps [range]",
        "job.yaml:4:47: train.clip: expected a number, found \".inf\" [type]",
        "job.yaml:5:16: method.rank: 257 must be 1 to 256 [range]"}},
      {"Durations",
       small_and("checkpoint: {every: 5s}\nstop: {max_time: 10}\n"
                 "sharing: {max_wait_for_partner: 2d}\n"),
       {"job.yaml:4:21: checkpoint.every: 5s must be 10s to 30d 00h [range]",
        "job.yaml:5:18: stop.max_time: expected a duration such as 90s, 5m, 2h or 1d, found \"10\" "
        "[type]",
        "job.yaml:6:33: sharing.max_wait_for_partner: 2d must be 0.0s to 1d 00h [range]"}},
      {"Name",
       small_and("name: a/b\n"),
       {"job.yaml:4:7: name: may hold letters, digits, . _ - [range]"}},
      {"NameOfTheFolderAbove",
       small_and("name: ..\n"),
       {"job.yaml:4:7: name: may not be \"..\" [range]"}},
      {"OutputElsewhere",
       small_and("output: {dir: ../../etc}\n"),
       {"job.yaml:4:10: output.dir: is not available in this version; leave it out "
        "[not_available]"}},
      {"UnknownMethod",
       small_and("method: {kind: qlora}\n"),
       {"job.yaml:4:16: method.kind: qlora is not supported; known: lora, bottleneck, prefix, "
        "bitfit, top_k, full; did you mean \"lora\"? [unknown_value]"}},
      {"Labels",
       "backbone: {model: m}\ntask: {kind: classify, labels: [a, a]}\ndata: {train: a}\n",
       {"job.yaml:2:36: task.labels: \"a\" stands twice [duplicate]"}},
      {"ColumnRole",
       small_and("evaluate: {every: 3}\n"),
       {"job.yaml:4:19: evaluate.every: expected e.g. \"1 epoch\", \"0.5 epochs\" or \"200 steps\" "
        "[type]"}},
      {"Column",
       "backbone: {model: m}\ntask: {kind: classify}\ndata:\n  train: a\n  columns: {txt: b}\n",
       {"job.yaml:5:13: data.columns: \"txt\" is none of text, text_pair, label; did you mean "
        "\"text\"? [unknown_key]"}},
      {"Deadline",
       small_and("deadline: 2001-01-01T00:00:00Z\n"),
       {"job.yaml:4:11: deadline: 2001-01-01T00:00:00Z lies in the past [range]"}},
      {"Domain",
       small_and("sharing: {trust_domain: team-b}\n"),
       {"job.yaml:4:25: sharing.trust_domain: you are not a member of team-b (yours: "
        "private:user-a, "
        "team-a) [permission]"}},
  };
}

std::vector<BadFile> rule_faults() {
  return {
      {"BothValidations",
       "backbone: {model: m}\ntask: {kind: classify}\n"
       "data: {train: a, validation: b, val_fraction: 0.2}\n",
       {"job.yaml:3:47: data.val_fraction: give validation or val_fraction, not both [either]"}},
      {"BothEnds",
       small_and("stop: {max_epochs: 2, max_steps: 100}\n"),
       {"job.yaml:4:34: stop.max_steps: give max_epochs or max_steps, not both [either]"}},
      {"Percent",
       small_and("target: {metric: accuracy, value: 92}\n"),
       {"job.yaml:4:35: target.value: accuracy is a fraction: 0.92, not 92 [range]"}},
      {"MetricOfAnotherTask",
       "backbone: {model: m}\ntask: {kind: regress}\ndata: {train: a}\n"
       "target: {metric: f1, value: 0.9}\n",
       {"job.yaml:4:18: target.metric: f1 is for classify, multi_label; for regress: pearson, "
        "spearman, mse, "
        "loss [metric]"}},
      {"UnknownMetric",
       small_and("target: {metric: acuracy, value: 0.9}\n"),
       {"job.yaml:4:18: target.metric: unknown metric \"acuracy\"; known: accuracy, f1, f1_macro, "
        "f1_micro, mcc, loss; did you mean \"accuracy\"? [metric]"}},
      {"HalfATarget",
       small_and("target: {metric: accuracy}\n"),
       {"job.yaml:4:18: target.value: a target needs both metric and value [missing]"}},
      {"RequiredTarget",
       small_and("stop: {require_target: true}\n"),
       {"job.yaml:4:24: stop.require_target: needs a target (target.metric and target.value) "
        "[missing]"}},
      {"NeverEvaluated",
       small_and("stop: {max_epochs: 2}\nevaluate: {every: 3 epochs}\n"),
       {"job.yaml:5:19: evaluate.every: no evaluation before the end (max_epochs 2) [range]"}},
      {"MinOverMax",
       small_and("resources: {gpus: {min: 3, max: 2}}\n"),
       {"job.yaml:4:33: resources.gpus.max: min 3 is more than max 2 [range]"}},
      {"MoreGpusThanExist",
       small_and("resources: {gpus: {min: 8}}\n"),
       {"job.yaml:4:25: resources.gpus.min: min 8, but the pool has 4 [range]"}},
      {"SizeOutside",
       small_and("resources: {gpus: {min: 1, max: 2, sizes: [1, 4]}}\n"),
       {"job.yaml:4:43: resources.gpus.sizes: 4 lies outside min 1 and max 2 [range]"}},
      {"SpatialOneWay",
       small_and("sharing: {modes: [temporal, spatial], give: false}\n"),
       {"job.yaml:4:18: sharing.modes: spatial needs give and take [either]"}},
  };
}

std::string name_of(const ::testing::TestParamInfo<BadFile>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Yaml, JobFileFaults, ::testing::ValuesIn(yaml_faults()), name_of);
INSTANTIATE_TEST_SUITE_P(Keys, JobFileFaults, ::testing::ValuesIn(key_faults()), name_of);
INSTANTIATE_TEST_SUITE_P(Values, JobFileFaults, ::testing::ValuesIn(value_faults()), name_of);
INSTANTIATE_TEST_SUITE_P(Rules, JobFileFaults, ::testing::ValuesIn(rule_faults()), name_of);

TEST(JobFile, AtMostFiftyFaultsInOrderOfPlace) {
  std::string text;
  for (int i = 0; i < 80; ++i) text += "key" + std::to_string(i) + ": 1\n";

  const auto faults = read_job_file(text, options()).faults;

  ASSERT_EQ(faults.size(), kMaxJobFaults);
  EXPECT_TRUE(std::is_sorted(faults.begin(), faults.end(),
                             [](auto& a, auto& b) { return a.line < b.line; }));
}

TEST(JobFile, DefaultsAreResolved) {
  const auto read = read_job_file(kSmall, options());

  ASSERT_TRUE(read.faults.empty());
  EXPECT_EQ(read.spec.name, "job");
  EXPECT_EQ(read.spec.owner, "user-a");
  EXPECT_EQ(read.spec.model, "/home/user/minilm");
  EXPECT_THAT(read.spec.data.train, ElementsAre("/home/user/train.csv"));
  EXPECT_EQ(read.spec.data.val_fraction, 0.1);
  EXPECT_THAT(read.spec.metrics, ElementsAre("accuracy"));
  EXPECT_THAT(read.spec.method.targets, ElementsAre("query", "value"));
  EXPECT_EQ(read.spec.sharing.trust_domain, "private:user-a");
}

constexpr const char* kFull = R"(ymir: 1
name: "sst-2"
description: "two\nlines: # no comment"
tags: {project: menu, when: "yes"}
backbone: {model: ../models/minilm}
task: {kind: classify, labels: [negative, positive]}
data: {train: [a.tsv, /b.tsv], validation: v.tsv, test: t.tsv, format: tsv, label: int,
  columns: {text: 1, label: 0}, header: no, encoding: latin-1, max_length: 64, overlong: drop,
  limit: 100}
method: {kind: lora, rank: 4, alpha: 8, dropout: 0.1, targets: query}
train: {batch: 16, lr: 2.0e-3, schedule: cosine, warmup: 0.06, weight_decay: 0.01,
  betas: [0.8, 0.99], epsilon: 1e-6, clip: 0, dropout: 0, precision: bf16, head_start: fit}
stop: {max_steps: 400, patience: 3, max_time: 1.5h, require_target: true}
target: {metric: f1, value: 0.92}
evaluate: {every: 20 steps, metrics: [loss]}
priority: 70
deadline: 2027-01-15T18:00:00Z
resources: {gpus: {min: 1, max: 4, sizes: [4, 1, 2]}}
sharing: {allow: true, trust_domain: team-a, modes: temporal, give: false,
  max_wait_for_partner: 4m, explore: true}
checkpoint: {every: 30s}
seed: 9007199254740991
)";

constexpr const char* kLanguage = R"(backbone: {model: llama}
task: {kind: lm}
data: {train: a.jsonl, format: messages, template: vicuna}
train: {loss_on: all}
target: {metric: bleu, value: 0.2}
evaluate: {metrics: [rouge_l, perplexity], answer_length: 64}
)";
constexpr const char* kLabelSets = R"(backbone: {model: m}
task: {kind: multi_label}
data: {train: a.csv, columns: {text: comment, label: [toxic, rude]}}
)";

TEST(JobFile, OfALanguageModelArrives) {
  const auto read = read_job_file(kLanguage, options());

  ASSERT_TRUE(read.faults.empty()) << to_string(read.faults.front(), "job.yaml");
  EXPECT_EQ(read.spec.kind, TaskKind::kLanguageModel);
  EXPECT_EQ(read.spec.data.format, "messages");
  EXPECT_EQ(read.spec.data.prompt_template, "vicuna");
  EXPECT_EQ(read.spec.data.loss_on, "all");
  EXPECT_EQ(read.spec.answer_length, 64);
  EXPECT_THAT(read.spec.metrics, ElementsAre("bleu", "rouge_l", "perplexity"));
}

TEST(JobFile, OfLabelSetsArrives) {
  const auto columns = read_job_file(kLabelSets, options());
  const auto separator = read_job_file(
      "backbone: {model: m}\ntask: {kind: multi_label}\ndata: {train: a, label_separator: '; '}\n",
      options());

  ASSERT_TRUE(columns.faults.empty()) << to_string(columns.faults.front(), "job.yaml");
  ASSERT_TRUE(separator.faults.empty()) << to_string(separator.faults.front(), "job.yaml");
  EXPECT_EQ(columns.spec.kind, TaskKind::kMultiLabel);
  EXPECT_THAT(columns.spec.data.label_columns, ElementsAre("toxic", "rude"));
  EXPECT_EQ(columns.spec.data.columns.at("text"), "comment");
  EXPECT_THAT(columns.spec.metrics, ElementsAre("f1_micro"));
  EXPECT_EQ(separator.spec.data.label_separator, "; ");
}

TEST(JobFile, EveryKeyArrivesInTheSpec) {
  const auto read = read_job_file(kFull, options());

  ASSERT_TRUE(read.faults.empty()) << to_string(read.faults.front(), "job.yaml");
  const JobSpec& spec = read.spec;
  EXPECT_EQ(spec.model, "/home/models/minilm");
  EXPECT_EQ(spec.tags.at("when"), "yes");
  EXPECT_THAT(spec.data.train, ElementsAre("/home/user/a.tsv", "/b.tsv"));
  EXPECT_EQ(spec.data.columns.at("text"), "1");
  EXPECT_EQ(spec.train.beta2, 0.99);
  EXPECT_EQ(spec.stop.max_epochs, 0);
  EXPECT_EQ(spec.stop.max_time, Seconds{5400});
  EXPECT_EQ(spec.evaluate_steps, 20);
  EXPECT_THAT(spec.metrics, ElementsAre("f1", "loss"));
  EXPECT_EQ(format_time(*spec.deadline), "2027-01-15T18:00:00Z");
  EXPECT_THAT(spec.sizes, ElementsAre(1, 2, 4));
  EXPECT_FALSE(spec.sharing.spatial);
}

TEST(JobFile, TheResolvedFileReadsBackTheSameInAnotherFolder) {
  JobFileOptions elsewhere = options();
  elsewhere.folder = "/srv";
  for (const char* text : {kSmall, kFull, kLanguage, kLabelSets}) {
    const std::string resolved = write_job_file(read_job_file(text, options()).spec);

    const auto again = read_job_file(resolved, elsewhere);

    EXPECT_TRUE(again.faults.empty()) << to_string(again.faults.front(), "resolved");
    EXPECT_EQ(write_job_file(again.spec), resolved);
  }
}

TEST(JobFile, MoreGpusThanTheMachineHasAreRefusedWhereNoPoolIsKnown) {
  JobFileOptions here = options();
  here.num_slots = 0;
  here.most_slots = 2;
  const auto with = [&](const char* gpus) {
    return read_job_file(small_and("resources: {gpus: " + std::string(gpus) + "}\n"), here).faults;
  };

  const auto faults = with("{min: 3}");

  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(to_string(faults.front(), "job.yaml"),
            "job.yaml:4:25: resources.gpus.min: min 3, but the machine has 2 [range]");
  EXPECT_TRUE(with("{min: 2, max: 8}").empty()) << "more on another machine";
}

TEST(JobFile, SaysWhereEachKeyStands) {
  const auto read = read_job_file(small_and("train: {batch: 16}\n"), options());

  ASSERT_TRUE(read.places.contains("train.batch"));
  EXPECT_EQ(read.places.at("train.batch").line, 4);
  EXPECT_EQ(read.places.at("train.batch").column, 16);
  EXPECT_FALSE(read.places.contains("train.lr"));
}

TEST(JobFile, JsonIsAJobFileToo) {
  const auto read = read_job_file(
      R"({"backbone": {"model": "/m"}, "task": {"kind": "regress"}, "data": {"train": ["/a"]}})",
      options());

  EXPECT_TRUE(read.faults.empty());
  EXPECT_EQ(read.spec.kind, TaskKind::kRegress);
}

TEST(JobFile, AByteOrderMarkIsSkippedAndTold) {
  const auto read = read_job_file("\xEF\xBB\xBF" + std::string(kSmall), options());

  EXPECT_TRUE(read.faults.empty());
  EXPECT_EQ(read.notes.size(), 1u);
}

TEST(JobFile, ColumnsCountCharactersNotBytes) {
  const auto faults = faults_of(small_and("description: {ä: é, ö: 1}\n"));

  EXPECT_THAT(faults,
              ElementsAre("job.yaml:4:14: description: expected a text, found a map [type]"));
}

TEST(JobFile, EveryKeyIsDocumented) {
  const auto page = read_file(YMIR_SOURCE_DIR "/docs/job-file.md");
  ASSERT_TRUE(page);

  for (const std::string_view key : job_file_keys())
    EXPECT_NE(page->find("`" + std::string(key) + "`"), std::string::npos) << key;
}

TEST(JobFile, TheDocumentedExampleIsGood) {
  const auto page = read_file(YMIR_SOURCE_DIR "/docs/job-file.md");
  ASSERT_TRUE(page);
  const std::string fence = "```yaml\n";
  const auto begin = page->find(fence);
  ASSERT_NE(begin, std::string::npos);
  const auto from = begin + fence.size();

  EXPECT_THAT(faults_of(page->substr(from, page->find("```", from) - from)), ElementsAre());
}

}  // namespace
}  // namespace ymir
