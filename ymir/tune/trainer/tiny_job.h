// For tests: a tiny BERT folder (random weights), a learnable text task as CSV files, and runs of a
// Session over them. Torch-free.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/base/rng.h"
#include "ymir/base/temp_folder.h"
#include "ymir/tune/checkpoint/safetensors.h"
#include "ymir/tune/session.h"

namespace ymir::testing {

class Workspace {
 public:
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  TempFolder folder_{"tune"};
};

inline constexpr int kWords = 40;

inline void write_tiny_model(const std::string& folder, bool with_pooler = true) {
  constexpr std::int64_t kHidden = 64, kFfn = 128, kLayers = 2, kPositions = 64;
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int word = 0; word < kWords; ++word) vocabulary += "w" + std::to_string(word) + "\n";
  constexpr std::int64_t kVocabulary = kWords + 5;
  const std::string config = fmt::format(
      R"({{"model_type":"bert","vocab_size":{},"hidden_size":{},"num_hidden_layers":{},)"
      R"("num_attention_heads":4,"intermediate_size":{},"hidden_act":"gelu",)"
      R"("max_position_embeddings":{},"hidden_dropout_prob":0.1,)"
      R"("attention_probs_dropout_prob":0.1}})",
      kVocabulary, kHidden, kLayers, kFfn, kPositions);
  std::map<std::string, std::pair<Shape, std::vector<float>>> tensors;
  Rng rng(17);
  const auto add = [&](const std::string& name, const Shape& shape, double deviation,
                       double mean = 0) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(mean + deviation * rng.normal()));
    tensors[name] = {shape, std::move(values)};
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in}, 0.1);
    add(name + ".bias", {out}, 0.02);
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {kHidden}, 0.02, 1);
    add(name + ".bias", {kHidden}, 0.02);
  };
  add("embeddings.word_embeddings.weight", {kVocabulary, kHidden}, 1);
  add("embeddings.position_embeddings.weight", {kPositions, kHidden}, 0.2);
  add("embeddings.token_type_embeddings.weight", {2, kHidden}, 0.2);
  norm("embeddings.LayerNorm");
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string at = "encoder.layer." + std::to_string(layer) + ".";
    for (const char* part : {"query", "key", "value"})
      linear(at + "attention.self." + part, kHidden, kHidden);
    linear(at + "attention.output.dense", kHidden, kHidden);
    norm(at + "attention.output.LayerNorm");
    linear(at + "intermediate.dense", kFfn, kHidden);
    linear(at + "output.dense", kHidden, kFfn);
    norm(at + "output.LayerNorm");
  }
  if (with_pooler) linear("pooler.dense", kHidden, kHidden);
  TensorMap map;
  for (const auto& [name, tensor] : tensors) map[name] = view_of(tensor.second, tensor.first);
  ASSERT_TRUE(make_folders(folder));
  ASSERT_TRUE(write_file(folder + "/config.json", config));
  ASSERT_TRUE(write_file(folder + "/vocab.txt", vocabulary));
  ASSERT_TRUE(write_safetensors(folder + "/model.safetensors", map));
}

// Rows of 4 to 20 words; the class says which of two words stands in the row. `shift` moves the two
// words, so that tasks differ.
inline void write_tiny_rows(const std::string& path, int rows, std::uint64_t seed, int shift = 0) {
  Rng rng(seed);
  std::string text = "text,label\n";
  for (int row = 0; row < rows; ++row) {
    const int label = static_cast<int>(rng.below(2));
    const auto length = rng.between(4, 20), place = rng.between(0, length - 1);
    for (std::int64_t i = 0; i < length; ++i) {
      const std::uint64_t word =
          i == place ? static_cast<std::uint64_t>(2 * shift + label) : 10 + rng.below(kWords - 10);
      text += (i == 0 ? "w" : " w") + std::to_string(word);
    }
    text += label == 1 ? ",yes\n" : ",no\n";
  }
  ASSERT_TRUE(write_file(path, text));
}

inline JobSpec tiny_spec(const Workspace& at, int shift = 0, std::uint64_t seed = 1) {
  const std::string name = "task" + std::to_string(shift);
  if (!std::filesystem::exists(at.path("model"))) write_tiny_model(at.path("model"));
  if (!std::filesystem::exists(at.path(name + ".train.csv"))) {
    write_tiny_rows(at.path(name + ".train.csv"), 150, 5 + static_cast<std::uint64_t>(shift),
                    shift);
    write_tiny_rows(at.path(name + ".validation.csv"), 60, 99 + static_cast<std::uint64_t>(shift),
                    shift);
  }
  JobSpec spec;
  spec.name = name;
  spec.model = at.path("model");
  spec.data.train = {at.path(name + ".train.csv")};
  spec.data.validation = {at.path(name + ".validation.csv")};
  spec.data.format = "csv";
  spec.method.targets = {"query", "value"};
  spec.train.batch = 16;
  spec.train.lr = 5e-3;
  spec.train.warmup = 3;
  spec.stop.max_epochs = 4;
  spec.seed = seed;
  spec.checkpoint_every = Seconds(0);
  return spec;
}

inline TaskOrder tiny_task(const Workspace& at, const JobSpec& spec, std::uint64_t job) {
  TaskOrder task;
  task.job = JobId{job};
  task.spec = spec;
  task.folder = at.path("j" + std::to_string(job));
  return task;
}

inline StartRun tiny_run(std::vector<TaskOrder> tasks, std::uint64_t run,
                         Mode mode = Mode::kNormal) {
  StartRun order;
  order.run = RunId{run};
  order.mode = mode;
  order.tasks = std::move(tasks);
  return order;
}

// All that a run reported. `stop_after` steps of its first task it is told to stop.
struct Heard {
  std::vector<EventBody> events{};
  std::vector<StepReport> steps{};
  Result<> result = Ok{};

  template <class Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> found;
    for (const EventBody& event : events)
      if (const auto* body = std::get_if<Kind>(&event)) found.push_back(*body);
    return found;
  }
  template <class Kind>
  Kind last() const {
    const auto found = all<Kind>();
    EXPECT_FALSE(found.empty());
    return found.empty() ? Kind{} : found.back();
  }
  // The newest checkpoint of a job.
  CheckpointCommitted checkpoint(std::uint64_t job) const {
    CheckpointCommitted newest;
    for (const auto& event : all<CheckpointCommitted>())
      if (event.job == JobId{job}) newest = event;
    return newest;
  }
};

inline Heard hear(Session& session, const StartRun& order, std::int64_t stop_after = -1) {
  Heard heard;
  std::int64_t steps = 0;
  const RunReports reports{[&](const EventBody& body) { heard.events.push_back(body); },
                           [&](const StepReport& step) {
                             heard.steps.push_back(step);
                             if (step.job == order.tasks.front().job) ++steps;
                           }};
  heard.result = session.run(order, reports, [&] {
    return stop_after >= 0 && steps >= stop_after ? StopWish::kStop : StopWish::kGoOn;
  });
  EXPECT_TRUE(heard.result) << heard.result.error().message;
  return heard;
}

// The same order, from a checkpoint.
inline TaskOrder resumed(TaskOrder task, const CheckpointCommitted& from) {
  task.checkpoint = from.path;
  task.checkpoint_hash = from.hash;
  task.from_step = from.step;
  task.source = {};
  return task;
}

inline std::unique_ptr<Session> tiny_session(const Workspace& at) {
  SessionOptions options;
  options.cache = at.path("cache");
  auto session = Session::open(options);
  EXPECT_TRUE(session);
  return *std::move(session);
}

inline std::string bytes_of(const std::string& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text) << path;
  return text ? *text : std::string();
}

inline std::string tensors_of(const CheckpointCommitted& checkpoint) {
  return bytes_of(checkpoint.path + "/state.safetensors");
}

// Runs to the end with stops after each of `stops` steps of a leg; the last checkpoint's tensors.
inline std::string with_stops(Session& session, const TaskOrder& task,
                              const std::vector<std::int64_t>& stops) {
  TaskOrder next = task;
  std::uint64_t run = 100 * task.job.value;
  for (const std::int64_t stop : stops)
    next = resumed(next, hear(session, tiny_run({next}, ++run), stop).checkpoint(task.job.value));
  return tensors_of(hear(session, tiny_run({next}, ++run)).checkpoint(task.job.value));
}

}  // namespace ymir::testing
