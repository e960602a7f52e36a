// The program `ymir` on every kind of task, from a job file to a merged model, and on the text sets
// of the shared data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/tune/checkpoint/safetensors.h"
#include "ymir/tune/trainer/tiny_models.h"

namespace ymir {
namespace {

using testing::Workspace;
using testing::write_tiny_family;

struct Ended {
  int code = -1;
  std::string output{};  // of both streams
};

class Program : public ::testing::Test {
 protected:
  // With a cache of its own, and whatever the words need quoted already.
  Ended ymir(const std::string& words) const {
    const std::string command =
        "YMIR_CACHE='" + at.path("cache") + "' '" YMIR_BIN_DIR "/ymir' " + words + " 2>&1";
    Ended ended;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return ended;
    std::array<char, 4096> piece{};
    for (std::size_t size = 0; (size = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;)
      ended.output.append(piece.data(), size);
    const int status = ::pclose(pipe);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    return ended;
  }
  std::string write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file(at.path(name), text));
    return at.path(name);
  }
  // A job that trains and validates on these rows, on a tiny model beside it.
  std::string job_on(const std::string& rows) const {
    write_tiny_family("bert", at.path("model"));
    write("rows.csv", rows);
    return write("job.yaml",
                 "backbone: {model: model}\ntask: {kind: classify}\n"
                 "data: {train: rows.csv, validation: rows.csv}\n");
  }
  // Validates, trains, evaluates what was exported and merges it; the evaluation's metrics.
  Json go_through(const std::string& family, const std::string& rest, const std::string& eval) {
    write_tiny_family(family, at.path("model"));
    const std::string job = write("job.yaml", "backbone: {model: model}\n" + rest);
    const Ended valid = ymir("validate " + job);
    EXPECT_EQ(valid.code, 0) << valid.output;
    const Ended trained = ymir("train --threads 1 " + job + " --out " + at.path("run"));
    EXPECT_EQ(trained.code, 0) << trained.output;
    const std::string adapter = at.path("run") + "/adapter";
    const Ended scored =
        ymir("eval --threads 1 --model " + at.path("model") + " --adapter " + adapter + " " + eval);
    EXPECT_EQ(scored.code, 0) << scored.output;
    const Ended merged = ymir("merge --model " + at.path("model") + " --adapter " + adapter +
                              " --out " + at.path("merged"));
    EXPECT_EQ(merged.code, 0) << merged.output;
    EXPECT_TRUE(std::filesystem::exists(at.path("merged") + "/model.safetensors"));
    const Ended without = ymir("eval --threads 1 --model " + at.path("merged") + " " + eval);
    EXPECT_EQ(without.code, 0) << without.output;
    const auto of_merged = parse_json(without.output.substr(0, without.output.find('\n')));
    const auto metrics = parse_json(scored.output.substr(0, scored.output.find('\n')));
    EXPECT_TRUE(of_merged) << without.output;
    if (of_merged && metrics) {
      EXPECT_NEAR(of_merged->at("loss").get<double>(), metrics->at("loss").get<double>(), 1e-3);
    }
    EXPECT_TRUE(metrics) << scored.output;
    return metrics ? *metrics : Json::object();
  }
  const Workspace at;
};

TEST_F(Program, TrainsALanguageModelOnConversations) {
  testing::write_tiny_conversations(at.path("talk.jsonl"), 120, 3);
  testing::write_tiny_conversations(at.path("other.jsonl"), 16, 4);

  const Json metrics = go_through(
      "llama",
      "task: {kind: lm}\ndata: {train: talk.jsonl, validation: other.jsonl, format: alpaca}\n"
      "train: {lr: 5.0e-3, batch: 16}\nmethod: {kind: full}\nstop: {max_epochs: 10}\n"
      "evaluate: {every: 5 epochs, metrics: [loss, exact_match], answer_length: 12}\n",
      "--data " + at.path("other.jsonl") + " --format alpaca --metrics exact_match,bleu");

  EXPECT_GT(metrics.value("exact_match", 0.0), 0.5);
  EXPECT_LT(metrics.value("perplexity", 1e9), 3);
}

TEST_F(Program, TrainsSetsOfLabels) {
  std::string rows = "comment,w0,w1\n";
  Rng rng(5);
  for (int row = 0; row < 120; ++row) {
    const bool a = rng.below(2) == 1, b = rng.below(2) == 1;
    rows += std::string(a ? "w0" : "w12") + (b ? " w1 w" : " w13 w") +
            std::to_string(15 + rng.below(20)) + (a ? ",1" : ",0") + (b ? ",1\n" : ",0\n");
  }
  write("sets.csv", rows);

  const Json metrics =
      go_through("bert",
                 "task: {kind: multi_label}\n"
                 "data: {train: sets.csv, val_fraction: 0.2, columns: {text: comment, label: [w0, "
                 "w1]}}\n"
                 "train: {lr: 5.0e-3, batch: 16}\nstop: {max_epochs: 8}\n",
                 "--data " + at.path("sets.csv") + " --columns 'text=comment,label=w0|w1'");

  EXPECT_GT(metrics.value("f1_micro", 0.0), 0.8);
}

TEST_F(Program, TrainsImages) {
  testing::write_tiny_images(at.path("pictures.csv"), 150, 3);

  const Json metrics = go_through("vit",
                                  "task: {kind: classify}\n"
                                  "data: {train: pictures.csv, val_fraction: 0.2, format: pixels}\n"
                                  "train: {lr: 3.0e-3, batch: 16}\nstop: {max_epochs: 4}\n",
                                  "--data " + at.path("pictures.csv") + " --format pixels");

  EXPECT_GT(metrics.value("accuracy", 0.0), 0.9);
}

// The largest difference of two adapters' values.
double difference(const std::string& a, const std::string& b) {
  const auto left = SafetensorsFile::open(a + "/adapter/adapter_model.safetensors");
  const auto right = SafetensorsFile::open(b + "/adapter/adapter_model.safetensors");
  EXPECT_TRUE(left && right);
  if (!left || !right || left->tensors().size() != right->tensors().size()) return 1e9;
  double most = 0;
  for (const auto& [name, view] : left->tensors()) {
    const TensorView* other = right->find(name);
    if (other == nullptr) return 1e9;
    const auto x = *to_f32(view), y = *to_f32(*other);
    EXPECT_EQ(x.size(), y.size()) << name;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      most = std::max(most, static_cast<double>(std::abs(x[i] - y[i])));
  }
  return most;
}

// Job files of one backbone, which differ in data, rank, seed and number of epochs.
class OneBatch : public Program {
 protected:
  std::string job(const std::string& name, int number, const std::string& rest = "") {
    const std::string rows = name + ".csv";
    if (!std::filesystem::exists(at.path("model"))) write_tiny_family("bert", at.path("model"));
    testing::write_tiny_rows(at.path(rows), 90 + 16 * number,
                             5 + static_cast<std::uint64_t>(number), number);
    return write(name + ".yaml",
                 "backbone: {model: model}\ntask: {kind: classify}\nseed: " +
                     std::to_string(number) + "\ndata: {train: " + rows +
                     ", val_fraction: 0.2}\ntrain: {lr: 1.0e-3, batch: 16, dropout: 0.1}\n" +
                     (rest.empty() ? "method: {kind: lora, rank: " + std::to_string(2 * number) +
                                         ", targets: [query, value]}\nstop: {max_epochs: " +
                                         std::to_string(number) + "}\n"
                                   : rest));
  }
  std::string out(const std::string& name) const { return at.path(name); }
};

TEST_F(OneBatch, EachJobHasTheResultThatItHasAlone) {
  const std::string a = job("a", 1), b = job("b", 2), c = job("c", 3);

  const Ended together =
      ymir("train --threads 1 " + a + " " + b + " " + c + " --out " + out("together"));

  ASSERT_EQ(together.code, 0) << together.output;
  EXPECT_THAT(together.output, ::testing::HasSubstr("a succeeded (budget)"));
  EXPECT_THAT(together.output, ::testing::ContainsRegex("c +budget +[0-9]+ +accuracy"));
  for (const std::string name : {"a", "b", "c"}) {
    const Ended alone =
        ymir("train --threads 1 " + at.path(name + ".yaml") + " --out " + out("alone_" + name));
    ASSERT_EQ(alone.code, 0) << alone.output;
    EXPECT_LT(difference(out("together/" + name), out("alone_" + name)), 1e-4) << name;
  }
}

TEST_F(OneBatch, GoesOnWithAllJobsOfAFolder) {
  const std::string a = job("a", 1), b = job("b", 2);
  ASSERT_EQ(ymir("train --threads 1 " + a + " " + b + " --out " + out("both")).code, 0);
  const std::string before = testing::bytes_of(out("both/b/adapter/adapter_model.safetensors"));
  for (const char* name : {"a", "b"}) std::filesystem::remove_all(out("both/") + name + "/adapter");

  const Ended again = ymir("train --threads 1 --resume " + out("both"));

  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_TRUE(std::filesystem::exists(out("both/a/adapter/adapter_model.safetensors")));
  EXPECT_EQ(testing::bytes_of(out("both/b/adapter/adapter_model.safetensors")), before);
}

TEST_F(OneBatch, JobsThatCannotShareItAreRefusedBeforeTraining) {
  const std::string good = job("good", 1);
  write_tiny_family("bert", at.path("other"));
  const std::string lora = "method: {kind: lora, rank: 4, targets: [query, value]}\n";
  struct Case {
    std::string rest;
    const char* why;
  };
  const std::vector<Case> cases = {
      {"method: {kind: bitfit}\n", "only LoRA"},
      {"method: {kind: lora, rank: 4, dora: true}\n", "only LoRA"},
      {"method: {kind: lora, rank: 4, targets: [layer.1.attention.self.query]}\n", "lowest"},
  };
  const auto refused = [&](const std::string& bad, const char* why) {
    const Ended ended = ymir("train --threads 1 " + good + " " + bad + " --out " + out("both"));
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_THAT(ended.output, ::testing::HasSubstr(why));
    EXPECT_THAT(ended.output, ::testing::HasSubstr(bad));
    EXPECT_FALSE(std::filesystem::exists(out("both/good/adapter")));
    EXPECT_THAT(ended.output, ::testing::Not(::testing::HasSubstr("step 1/")));
  };

  for (const Case& c : cases) refused(job("bad", 2, c.rest), c.why);
  std::string text = testing::bytes_of(job("bad", 2, lora));
  refused(
      write("bad.yaml", std::string(text).replace(text.find("model: model"), 12, "model: other")),
      "backbones");
  refused(write("bad.yaml", std::string(text).replace(text.find("dropout: 0.1"), 12, "dropout: 0")),
          "drop out");
  refused(write("bad.yaml", text + "name: good\n"), "both name their job");
}

TEST_F(Program, SaysWhatAKindNeeds) {
  write_tiny_family("bert", at.path("model"));
  testing::write_tiny_conversations(at.path("talk.jsonl"), 20, 3);
  write("rows.csv", "text,label\nw1 w2,a\nw3,b\nw4,a\nw5,b\n");
  const auto told = [&](const std::string& rest) {
    const Ended ended = ymir("validate " + write("job.yaml", "backbone: {model: model}\n" + rest));
    EXPECT_EQ(ended.code, 2);
    return ended.output;
  };

  EXPECT_THAT(told("task: {kind: lm}\ndata: {train: talk.jsonl, format: alpaca}\n"),
              ::testing::HasSubstr("lm needs a decoder"));
  EXPECT_THAT(told("task: {kind: classify}\ndata: {train: rows.csv, format: idx}\n"),
              ::testing::HasSubstr("idx holds images, the model reads text"));
}

TEST_F(Program, ARefusedTrainingLeavesNothingBehind) {
  const std::string job = job_on("text,label\nw1 w2,a\nw3,a\nw4,a\nw5,a\n");

  const Ended ended = ymir("train --threads 1 " + job + " --out " + at.path("deep/run"));

  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output, ::testing::HasSubstr(job + ":3:15: data.train: "));
  EXPECT_THAT(ended.output, ::testing::HasSubstr("a classifier needs two"));
  EXPECT_FALSE(std::filesystem::exists(at.path("deep")));
}

TEST_F(Program, ARefusedTrainingLeavesAnEarlierOneAsItWas) {
  const std::string job = job_on("text,label\nw1 w2,a\nw3,b\nw4,a\nw5,b\n");
  ASSERT_TRUE(make_folders(at.path("run/checkpoint")));
  write("run/job.yaml", "of another job\n");

  const Ended ended = ymir("train --threads 1 " + job + " --out " + at.path("run"));

  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output, ::testing::HasSubstr("holds a training already"));
  EXPECT_EQ(testing::bytes_of(at.path("run/job.yaml")), "of another job\n");
  EXPECT_FALSE(std::filesystem::exists(at.path("run/spec.json")));
}

struct SharedSet {
  const char* name;
  const char* data;  // below data:, paths from text/
  const char* kind = "classify";
  bool has_empty_rows = false;  // which are told, with their places
};

constexpr SharedSet kSharedSets[] = {
    {"sst2",
     "train: sentence_classification/stsa.binary.train\n  validation: "
     "sentence_classification/stsa.binary.dev\n  test: sentence_classification/stsa.binary.test\n"
     "  format: lines"},
    {"sst5",
     "train: sentence_classification/stsa.fine.train\n  validation: "
     "sentence_classification/stsa.fine.dev\n  test: sentence_classification/stsa.fine.test\n"
     "  format: lines"},
    {"trec",
     "train: sentence_classification/TREC.train.all\n  validation: "
     "sentence_classification/TREC.test.all\n  format: lines\n  encoding: latin-1"},
    {"subj", "train: sentence_classification/subj.all\n  format: lines\n  encoding: latin-1"},
    {"mr", "train: sentence_classification/rt-polarity.all\n  format: lines\n  encoding: latin-1"},
    {"cr", "train: sentence_classification/custrev.all\n  format: lines", "classify", true},
    {"mpqa", "train: sentence_classification/mpqa.all\n  format: lines", "classify", true},
    {"cola",
     "train: cola/in_domain_train.tsv\n  validation: cola/in_domain_dev.tsv\n  test: "
     "cola/out_of_domain_dev.tsv\n  columns: {text: 3, label: 1}\n  header: no"},
    {"banking77",
     "train: banking77/train.csv\n  validation: banking77/test.csv\n  columns: {label: category}"},
    {"sms_spam", "train: sms_spam/sms.tsv\n  columns: {text: 1, label: 0}\n  header: no"},
    {"ag_news",
     "train: ag_news_test/test.csv\n  columns: {text: 1, text_pair: 2, label: 0}\n"
     "  header: no"},
    {"stsb",
     "train: stsb/stsb-en-train.csv\n  validation: stsb/stsb-en-dev.csv\n  test: "
     "stsb/stsb-en-test.csv\n  columns: {text: 0, text_pair: 1, label: 2}\n  header: no",
     "regress"},
};

TEST_F(Program, ValidatesEveryTextSetOfTheSharedData) {
  const char* given = std::getenv("YMIR_SHARED");
  const std::string text =
      (given != nullptr ? std::string(given) : YMIR_SOURCE_DIR "/../shared") + "/data/text";
  if (!std::filesystem::exists(text)) GTEST_SKIP() << "no " << text;
  write_tiny_family("bert", at.path("model"));
  std::filesystem::create_directory_symlink(std::filesystem::canonical(text), at.path("text"));

  for (const SharedSet& set : kSharedSets) {
    std::string job = std::string("backbone: {model: model}\ntask: {kind: ") + set.kind +
                      "}\ndata:\n  " + set.data + "\n";
    for (const char* key : {"train: ", "validation: ", "test: "})
      if (const auto found = job.find(std::string("  ") + key); found != job.npos)
        job.insert(found + 2 + std::string(key).size(), "text/");

    const Ended ended = ymir("validate " + write(std::string(set.name) + ".yaml", job));

    EXPECT_EQ(ended.code, set.has_empty_rows ? 2 : 0) << set.name << "\n"
                                                      << ended.output.substr(0, 2000);
    if (!set.has_empty_rows) continue;
    EXPECT_THAT(ended.output, ::testing::ContainsRegex(".all:[0-9]+: the text is empty"));
    const Ended without = ymir("validate " + write("dropped.yaml", job + "  empty: drop\n"));
    EXPECT_EQ(without.code, 0) << without.output.substr(0, 2000);
    EXPECT_THAT(without.output, ::testing::HasSubstr("rows with an empty text or label are left"));
  }
}

}  // namespace
}  // namespace ymir
