// Faults that users of other fine-tuning tools have reported, each as a test that bears its name.
// Those not here stand beside what they are about: PaddingDoesNotChangeLogits
// (model_reference_test), ExactlyOneBos and EosLabelSurvivesPadEqualsEos (conversation_test),
// F1IsNotAnAverageOfRanks (metrics_test), OomKeepsTheGlobalBatch (exactness_test),
// GradientIsolation (task_test).
#include <ATen/ops/equal.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <fstream>

#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/order.h"
#include "ymir/tune/merge.h"
#include "ymir/tune/model/gemm.h"
#include "ymir/tune/trainer/task_torch.h"
#include "ymir/tune/trainer/tiny_models.h"

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
using testing::tiny_spec;
using testing::tiny_task;
using testing::Workspace;

class PeerFaults : public ::testing::Test {
 protected:
  Heard run(const JobSpec& spec, std::uint64_t job, std::int64_t stop_after = -1) {
    return hear(*session, tiny_run({tiny_task(at, spec, job)}, ++last_run), stop_after);
  }
  Heard go_on(const JobSpec& spec, std::uint64_t job, const Heard& from,
              std::int64_t stop_after = -1) {
    return hear(*session,
                tiny_run({resumed(tiny_task(at, spec, job), from.checkpoint(job))}, ++last_run),
                stop_after);
  }
  std::map<std::string, double> evaluated(const JobSpec& spec, const std::string& adapter,
                                          const std::string& model) {
    EvaluateRequest request;
    request.model = model;
    request.adapter = adapter;
    request.data = spec.data;
    const auto metrics = session->evaluate(request);
    EXPECT_TRUE(metrics) << metrics.error().message;
    return metrics ? *metrics : std::map<std::string, double>{};
  }

  const Workspace at;
  std::unique_ptr<Session> session = tiny_session(at);
  std::uint64_t last_run = 0;
};

TEST_F(PeerFaults, AllAdaptersOfABatchGetGradients) {  // peft#631, #2436, #837
  JobSpec a = tiny_spec(at), b = tiny_spec(at, 1, 2);
  a.stop.max_epochs = b.stop.max_epochs = 1;

  const Heard heard =
      hear(*session, tiny_run({tiny_task(at, a, 1), tiny_task(at, b, 2)}, 1, Mode::kSpatial), 3);

  for (const std::uint64_t job : {1, 2}) {
    const auto file = SafetensorsFile::open(heard.checkpoint(job).path + "/state.safetensors");
    ASSERT_TRUE(file);
    for (const auto& [name, view] : file->tensors()) {
      if (!name.starts_with("v/")) continue;  // second moments: 0 where no gradient ever came
      const auto values = to_f32(view);
      EXPECT_TRUE(std::ranges::any_of(*values, [](float v) { return v != 0; })) << job << name;
    }
  }
}

TEST_F(PeerFaults, SecondAdapterIsTrainable) {  // peft#2639, verl#7909
  const Heard first = run(tiny_spec(at), 1);
  const Heard second = run(tiny_spec(at, 1), 2);
  const auto fresh = tiny_session(at);
  const Heard alone = hear(*fresh, tiny_run({tiny_task(at, tiny_spec(at, 1), 3)}, 1));

  EXPECT_LT(second.steps.back().loss, 0.9 * second.steps.front().loss);
  EXPECT_EQ(tensors_of(second.checkpoint(2)), tensors_of(alone.checkpoint(3)));
  EXPECT_NE(tensors_of(second.checkpoint(2)), tensors_of(first.checkpoint(1)));
}

TEST_F(PeerFaults, HeadIsSavedAndLoaded) {  // peft#310, #577, #876, #1070
  for (const char* family : {"bert", "roberta", "distilbert", "vit", "llama"}) {
    const JobSpec spec = family_spec(at, family);
    const Heard heard = run(spec, ++last_run);
    const auto finished = heard.last<JobFinished>();

    EXPECT_EQ(evaluated(spec, finished.adapter, spec.model).at("loss"), finished.metrics.at("loss"))
        << family;
  }
}

TEST_F(PeerFaults, NonDefaultNameRoundTrips) {  // transformers#26160
  JobSpec spec = tiny_spec(at);
  spec.name = "default.weird-name_7";
  spec.method.targets = {"attention.output.dense", "intermediate.dense"};

  const auto finished = run(spec, 1).last<JobFinished>();

  EXPECT_EQ(evaluated(spec, finished.adapter, spec.model).at("loss"), finished.metrics.at("loss"));
}

TEST_F(PeerFaults, MissingTensorIsNeverSilentlyRandom) {  // transformers#36201
  const JobSpec spec = tiny_spec(at);
  const auto finished = run(spec, 1).last<JobFinished>();
  const auto file = SafetensorsFile::open(finished.adapter + "/adapter_model.safetensors");
  ASSERT_TRUE(file);
  for (const auto& [left_out, unused] : file->tensors()) {
    TensorMap rest = file->tensors();
    rest.erase(left_out);
    const std::string folder = at.path("cut");
    std::filesystem::remove_all(folder);
    std::filesystem::copy(finished.adapter, folder);
    std::filesystem::remove(folder + "/ymir_adapter.json");  // its hash would tell at once
    ASSERT_TRUE(write_safetensors(folder + "/adapter_model.safetensors", rest));
    EvaluateRequest request;
    request.model = spec.model;
    request.adapter = folder;
    request.data = spec.data;

    EXPECT_FALSE(session->evaluate(request)) << left_out;
  }
  // The backbone's own tensors too.
  const auto model = SafetensorsFile::open(spec.model + "/model.safetensors");
  TensorMap rest = model->tensors();
  rest.erase("encoder.layer.1.output.dense.bias");
  std::filesystem::copy(spec.model, at.path("holed"));
  ASSERT_TRUE(write_safetensors(at.path("holed") + "/model.safetensors", rest));
  JobSpec holed = spec;
  holed.model = at.path("holed");
  const auto result = session->run(tiny_run({tiny_task(at, holed, 9)}, 99),
                                   RunReports{[](auto&) {}, {}}, [] { return StopWish::kGoOn; });
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("encoder.layer.1.output.dense.bias"));
}

TEST_F(PeerFaults, MergedEqualsUnmergedAndMergeChangesSomething) {  // peft#1904, #2322; trl#386
  for (const char* family : {"bert", "roberta", "distilbert", "vit", "llama"}) {
    JobSpec spec = family_spec(at, family);
    spec.method.targets = {"query", "key", "value"};
    const auto finished = run(spec, ++last_run).last<JobFinished>();
    const std::string output = at.path(std::string("merged-") + family);

    const auto merged = merge_adapter({spec.model, finished.adapter, output});

    ASSERT_TRUE(merged) << merged.error().message;
    EXPECT_EQ(merged->num_changed, 6) << family;
    // The merged model with an adapter whose LoRA does nothing: the head alone.
    const auto file = SafetensorsFile::open(finished.adapter + "/adapter_model.safetensors");
    ASSERT_TRUE(file);
    TensorMap tensors = file->tensors();
    std::vector<float> zeros(1 << 16, 0.0f);
    for (auto& [name, view] : tensors)
      if (name.find(".lora_B.") != name.npos)
        view = view_of(std::span(zeros).first(view.count()), view.shape);
    const std::string idle = at.path(std::string("idle-") + family);
    std::filesystem::copy(finished.adapter, idle);
    std::filesystem::remove(idle + "/ymir_adapter.json");
    ASSERT_TRUE(write_safetensors(idle + "/adapter_model.safetensors", tensors));
    JobSpec numbered = spec;
    numbered.labels = std::string(family) == "vit" ? std::vector<std::string>{"left", "right"}
                                                   : std::vector<std::string>{"no", "yes"};
    EvaluateRequest request;
    request.model = output;
    request.adapter = idle;
    request.data = spec.data;
    request.data.max_length = std::string(family) == "vit" ? 0 : 64;
    request.labels = numbered.labels;
    const auto after = session->evaluate(request);
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_NEAR(after->at("loss"), finished.metrics.at("loss"), 1e-4) << family;
    request.model = spec.model;
    const auto plain = session->evaluate(request);
    ASSERT_TRUE(plain);
    EXPECT_GT(std::abs(plain->at("loss") - finished.metrics.at("loss")), 1e-3) << family;
  }
}

TEST_F(PeerFaults, BestCheckpointIsLoaded) {  // transformers#24103, peft#394, unsloth-zoo#822
  JobSpec spec = tiny_spec(at);
  spec.train.lr = 0.05;  // too fast: the last evaluation is not the best
  spec.train.schedule = "constant";
  spec.metrics = {"loss"};
  spec.stop.max_epochs = 12;
  const Heard heard = run(spec, 1);
  double best = INFINITY;
  for (const auto& event : heard.all<EpochEvaluated>())
    best = std::min(best, event.evaluation.metrics.at("loss"));

  const auto finished = heard.last<JobFinished>();

  ASSERT_LT(best, heard.all<EpochEvaluated>().back().evaluation.metrics.at("loss"));
  EXPECT_EQ(finished.metrics.at("loss"), best);
  EXPECT_EQ(evaluated(spec, finished.adapter, spec.model).at("loss"), best);
}

TEST_F(PeerFaults, NanIsNeverBest) {  // peft#2256
  JobSpec spec = tiny_spec(at);
  spec.train.clip = 0;
  spec.train.lr = 0.9;
  spec.train.warmup = 0;
  spec.train.schedule = "constant";
  spec.train.epsilon = 1e-30;
  spec.method.alpha = 1e4;
  spec.metrics = {"loss"};
  spec.evaluate_epochs = 0.1;

  const Heard heard = run(spec, 1);

  const auto evaluations = heard.all<EpochEvaluated>();
  for (const auto& event : evaluations)
    for (const auto& [name, value] : event.evaluation.metrics)
      EXPECT_TRUE(std::isfinite(value)) << name;
  const auto finished = heard.last<JobFinished>();
  for (const auto& [name, value] : finished.metrics) EXPECT_TRUE(std::isfinite(value)) << name;
}

TEST_F(PeerFaults, ResumeContinuesTheLoss) {  // transformers#11323, LlamaFactory#512
  const Heard whole = run(tiny_spec(at), 1);
  const Heard first = run(tiny_spec(at), 2, 14);
  const Heard second = go_on(tiny_spec(at), 2, first);

  ASSERT_EQ(first.steps.size() + second.steps.size(), whole.steps.size());
  for (const StepReport& step : second.steps)
    EXPECT_EQ(step.loss, whole.steps[static_cast<std::size_t>(step.step - 1)].loss) << step.step;
}

TEST_F(PeerFaults, ResumedRunStillTrains) {  // transformers#33336, kohya-ss/sd-scripts#954
  const Heard first = run(tiny_spec(at), 1, 14);
  const std::string before = tensors_of(first.checkpoint(1));

  const Heard second = go_on(tiny_spec(at), 1, first, 1);

  EXPECT_NE(tensors_of(second.checkpoint(1)), before);
}

TEST_F(PeerFaults, LearningRateAtResumeIsTheClosedForm) {  // transformers#27749, pytorch#60265
  const JobSpec spec = tiny_spec(at);
  const LrSchedule schedule = *make_schedule(spec.train, 40);
  const Heard first = run(spec, 1, 2);  // inside the warm-up
  const Heard second = go_on(spec, 1, first, 9);
  const Heard third = go_on(spec, 1, second);

  for (const Heard* heard : {&first, &second, &third})
    for (const StepReport& step : heard->steps) EXPECT_EQ(step.lr, schedule.at(step.step - 1));
}

TEST_F(PeerFaults, OrderAfterResumeInEpochN) {  // accelerate#2016, #2823, verl#7401
  const Heard whole = run(tiny_spec(at), 1);
  const Heard first = run(tiny_spec(at), 2, 23);  // in the third of 10 steps' epochs
  const Heard second = go_on(tiny_spec(at), 2, first);

  for (const StepReport& step : second.steps)  // other rows would have other lengths
    EXPECT_EQ(step.tokens, whole.steps[static_cast<std::size_t>(step.step - 1)].tokens);
}

TEST_F(PeerFaults, SecondPreemptionInOneEpoch) {  // accelerate#4071, lhotse#1080
  const Heard whole = run(tiny_spec(at), 1);
  const Heard first = run(tiny_spec(at), 2, 12);
  const Heard second = go_on(tiny_spec(at), 2, first, 3);
  const Heard third = go_on(tiny_spec(at), 2, second);

  EXPECT_EQ(tensors_of(third.checkpoint(2)), tensors_of(whole.checkpoint(1)));
}

TEST_F(PeerFaults, ResumeAtEpochBoundary) {  // KempnerForge#57
  const Heard whole = run(tiny_spec(at), 1);
  const Heard first = run(tiny_spec(at), 2, 10);
  const Heard second = go_on(tiny_spec(at), 2, first);

  EXPECT_EQ(second.steps.front().step, 11);
  EXPECT_EQ(tensors_of(second.checkpoint(2)), tensors_of(whole.checkpoint(1)));
}

TEST_F(PeerFaults, MidAccumulationResume) {  // a step in shares is stopped only at its end
  JobSpec spec = tiny_spec(at);
  spec.train.dropout = 0;
  const std::string state = [&] {  // from a checkpoint that says: 4 rows at once
    const Heard begun = run(spec, 1, 5);
    const std::string file = begun.checkpoint(1).path + "/state.json";
    Json json = Json::parse(bytes_of(file));
    json["progress"]["micro_rows"] = 4;
    EXPECT_TRUE(write_file(file, canonical(json)));
    return begun.checkpoint(1).path;
  }();
  const auto finish = [&](const std::vector<std::int64_t>& stops) {
    TaskOrder next = tiny_task(at, spec, 1);
    next.checkpoint = state;
    next.from_step = 5;
    for (const std::int64_t stop : stops)
      next = resumed(next, hear(*session, tiny_run({next}, ++last_run), stop).checkpoint(1));
    return tensors_of(hear(*session, tiny_run({next}, ++last_run)).checkpoint(1));
  };

  const std::string whole = finish({}), stopped = finish({1, 6, 2});

  EXPECT_EQ(stopped, whole);
}

TEST_F(PeerFaults, NoSkippingByReading) {  // meta-pytorch/data#1113: a late resume starts at once
  BatchOrder fresh(1, 5000, 32), used(1, 5000, 32);
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch)
    for (std::uint32_t batch = 0; batch < 10; ++batch) used.batch(epoch, batch);

  const auto a = fresh.batch(999, 77), b = used.batch(999, 77);  // epoch 999 without those before
  EXPECT_TRUE(std::ranges::equal(a, b));
}

TEST_F(PeerFaults, StateIsIndependentOfWorldSize) {  // Lightning#16815, verl#2265
  const Heard first = run(tiny_spec(at), 1, 12);
  StartRun order = tiny_run({resumed(tiny_task(at, tiny_spec(at), 1), first.checkpoint(1))}, 50);
  order.num_threads = 2;

  const Heard second = hear(*session, order);

  const Heard whole = run(tiny_spec(at), 2);
  EXPECT_EQ(second.steps.front().step, 13);
  for (const StepReport& step : second.steps)
    EXPECT_NEAR(step.loss, whole.steps[static_cast<std::size_t>(step.step - 1)].loss, 1e-3);
}

TEST_F(PeerFaults, LossDividedByGlobalTokensOnce) {  // trl#2175, transformers#37766, #35438
  const JobSpec spec = family_spec(at, "llama", true);
  JobSpec halves = spec;
  const Heard whole = run(spec, 1, 1);
  // The same 16 rows in shares of unequal numbers of answer tokens.
  const Heard begun = run(halves, 2, 0);
  const std::string file = begun.checkpoint(2).path + "/state.json";
  Json json = Json::parse(bytes_of(file));
  json["progress"]["micro_rows"] = 5;
  ASSERT_TRUE(write_file(file, canonical(json)));
  TaskOrder task = tiny_task(at, halves, 2);
  task.checkpoint = begun.checkpoint(2).path;

  const Heard shares = hear(*session, tiny_run({task}, 90), 1);

  ASSERT_FALSE(shares.steps.empty());
  EXPECT_NEAR(shares.steps[0].loss, whole.steps[0].loss, 1e-5);
}

TEST_F(PeerFaults, EvaluationCountsEveryRowOnce) {  // Lightning#2398, accelerate#540, composer#2218
  const JobSpec spec = tiny_spec(at);
  const auto finished = run(spec, 1).last<JobFinished>();
  EvaluateRequest request;
  request.model = spec.model;
  request.adapter = finished.adapter;
  request.data = spec.data;
  request.predictions = at.path("predictions.jsonl");

  const auto metrics = session->evaluate(request);

  ASSERT_TRUE(metrics);
  std::int64_t right = 0, row = 0;
  const std::string text = bytes_of(request.predictions);
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    const Json json = Json::parse(line);
    EXPECT_EQ(json["row"], row++);
    right += json["label"] == json["prediction"] ? 1 : 0;
  }
  EXPECT_EQ(row, 60);
  EXPECT_DOUBLE_EQ(metrics->at("accuracy"), static_cast<double>(right) / 60);
}

TEST_F(PeerFaults, WrongColumnNamesFileRowColumn) {  // axolotl#879, LlamaFactory#3018
  JobSpec spec = tiny_spec(at);
  spec.data.columns = {{"text", "txt"}};
  JobSpec odd = tiny_spec(at);
  odd.data.train = {at.path("odd.csv")};
  ASSERT_TRUE(write_file(at.path("odd.csv"), "text,label\nw1,yes\nw2\nw3,no\nw4,yes\n"));
  const auto message = [&](const JobSpec& job) {
    const auto result = session->run(tiny_run({tiny_task(at, job, 9)}, ++last_run),
                                     RunReports{[](auto&) {}, {}}, [] { return StopWish::kGoOn; });
    return result ? std::string() : result.error().message;
  };

  EXPECT_THAT(message(spec), ::testing::HasSubstr("no column \"txt\" in " + spec.data.train[0]));
  EXPECT_THAT(message(spec), ::testing::HasSubstr("did you mean \"text\"?"));
  EXPECT_THAT(message(odd), ::testing::HasSubstr("odd.csv:3: 1 fields, expected 2"));
}

// Counts the bytes of tensors that are alive.
class CountedMemory final : public c10::Allocator {
 public:
  CountedMemory() : under_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 100); }
  ~CountedMemory() override { c10::SetCPUAllocator(under_, 100); }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;
  c10::DataPtr allocate(std::size_t bytes) override {
    alive_ += bytes;
    peak_ = std::max(peak_, alive_);
    auto* block = new Block{under_->allocate(bytes), bytes};
    return {block->data.get(), block, &release, at::Device(at::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    under_->copy_data(to, from, count);
  }
  static std::size_t alive() { return alive_; }
  static std::size_t take_peak() { return std::exchange(peak_, alive_); }

 private:
  struct Block {
    c10::DataPtr data;
    std::size_t bytes;
  };
  static void release(void* block) {
    auto* mine = static_cast<Block*>(block);
    alive_ -= mine->bytes;
    delete mine;
  }
  c10::Allocator* under_;
  inline static std::size_t alive_ = 0, peak_ = 0;  // blocks may outlive the allocator
};

class PeerMemory : public PeerFaults {
 protected:
  // Peaks of tensor memory: of the steps, and of each part between them.
  struct Peaks {
    std::size_t steps = 0, rest = 0;
  };
  Peaks peaks(const StartRun& order, std::int64_t stop_after) {
    Peaks out;
    const CountedMemory memory;
    std::int64_t steps = 0;
    CountedMemory::take_peak();
    const RunReports reports{
        [&](const EventBody&) { out.rest = std::max(out.rest, CountedMemory::take_peak()); },
        [&](const StepReport&) {
          out.steps = std::max(out.steps, CountedMemory::take_peak());
          ++steps;
        }};
    const auto result = session->run(order, reports, [&] {
      return stop_after >= 0 && steps >= stop_after ? StopWish::kStop : StopWish::kGoOn;
    });
    EXPECT_TRUE(result) << result.error().message;
    return out;
  }
  JobSpec whole_model() const {
    JobSpec spec = tiny_spec(at);
    spec.method.kind = "full";
    spec.stop.max_epochs = 2;
    return spec;
  }
};

TEST_F(PeerMemory, SaveNeedsNoExtraCopyNorDoesEvaluation) {  // peft#447, axolotl#219, unsloth#718
  const Peaks whole = peaks(tiny_run({tiny_task(at, whole_model(), 1)}, 1), -1);

  EXPECT_GT(whole.steps, 0u);
  EXPECT_LE(whole.rest, whole.steps);
}

TEST_F(PeerMemory, ResumeFitsWhereTrainingFitted) {  // accelerate#1444, xTuring#140
  const TaskOrder task = tiny_task(at, whole_model(), 1);
  const Heard first = hear(*session, tiny_run({task}, 1), 13);

  const Peaks after = peaks(tiny_run({resumed(task, first.checkpoint(1))}, 2), -1);

  EXPECT_LE(after.rest, after.steps);
}

TEST_F(PeerMemory, EvaluationReturnsItsMemory) {  // git-cloner/llama2-lora-fine-tuning#18
  const JobSpec spec = whole_model();
  const auto finished = run(spec, 1).last<JobFinished>();
  evaluated(spec, finished.adapter, spec.model);
  const CountedMemory memory;
  const std::size_t before = CountedMemory::alive();

  for (int i = 0; i < 3; ++i) evaluated(spec, finished.adapter, spec.model);

  EXPECT_EQ(CountedMemory::alive(), before);
}

TEST_F(PeerMemory, WeightsAreNotInitialisedTwice) {  // GLiNER#355: no shell of random weights
  run(tiny_spec(at), 1, 1);                          // the image is made
  session = tiny_session(at);
  const auto weights = std::filesystem::file_size(at.path("model") + "/model.safetensors");

  const Peaks start = peaks(tiny_run({tiny_task(at, tiny_spec(at), 2)}, 9), 0);

  EXPECT_LT(start.rest, weights / 2);  // the backbone is mapped, never allocated
}

TEST_F(PeerMemory, AModelInHalfPrecisionIsMappedAsItIs) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const std::string model = at.path(dtype == DType::kBF16 ? "bf16" : "f16");
    testing::write_tiny_family("llama", model, dtype);
    JobSpec spec = family_spec(at, "llama", true);
    spec.model = model;
    spec.train.precision = dtype == DType::kBF16 ? "bf16" : "f32";
    run(spec, ++last_run, 1);
    session = tiny_session(at);
    std::uintmax_t images = 0;
    for (const auto& entry : std::filesystem::directory_iterator(at.path("cache") + "/images"))
      images += entry.file_size();

    const Peaks start = peaks(tiny_run({tiny_task(at, spec, ++last_run)}, 99 + last_run), 0);

    const auto weights = std::filesystem::file_size(model + "/model.safetensors");
    EXPECT_LT(images, 1.2 * static_cast<double>(weights));
    EXPECT_LT(start.rest, weights / 2);
    std::filesystem::remove_all(at.path("cache") + "/images");
  }
}

// While one lives, the process may have so much more private memory; what asks for more fails.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more) {
    std::size_t kilobytes = 0;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == "VmData:") status >> kilobytes;
    ::getrlimit(RLIMIT_DATA, &before_);
    const rlimit now{kilobytes * 1024 + more, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_DATA, &now), 0);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_DATA, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

// LLaMA's form in bf16, 154 million values in three layers: more than are kept packed. All its
// tensors begin with the same values.
void write_wide_model(const std::string& folder) {
  const std::string text =
      R"({"model_type":"llama","hidden_size":2048,"num_hidden_layers":3,"num_attention_heads":16,)"
      R"("intermediate_size":5632,"vocab_size":1155,"max_position_embeddings":128})";
  const auto config = parse_model_config(text);
  ASSERT_TRUE(config);
  std::vector<std::uint16_t> block(std::size_t{5632} * 2048);
  Rng rng(5);
  for (std::uint16_t& bits : block) bits = bf16_bits(static_cast<float>(rng.uniform() - 0.5) / 16);
  const Family& family = family_of(config->family);
  TensorMap map;
  for (const ImageEntry& entry : image_layout(*config, {.pooler = false, .output = true}))
    for (std::size_t i = 0; i < entry.sources.size(); ++i) {
      Shape shape = entry.shape;
      if (!entry.heights.empty()) shape[0] = entry.heights[i];
      const auto count = static_cast<std::size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1));
      const bool outside = entry.name.starts_with("output.");
      map[(outside ? "" : std::string(family.prefix)) + entry.sources[i]] = {
          DType::kBF16, shape, std::as_bytes(std::span(block).first(count))};
    }
  ASSERT_TRUE(make_folders(folder));
  ASSERT_TRUE(write_file(folder + "/config.json", text));
  ASSERT_TRUE(write_safetensors(folder + "/model.safetensors", map));
  testing::copy_tokenizer("llama2", folder,
                          R"({"tokenizer_class":"LlamaTokenizer","eos_token":"</s>"})");
}

// The largest matrix alone takes 92 MB in f32, the model's file 318 MB.
TEST_F(PeerMemory, AStepAndTheFirstStartOfALargeModelTakeLittlePrivateMemory) {
  if (!kernels::has_gemm()) GTEST_SKIP() << "this CPU has no AVX-512";
  write_wide_model(at.path("wide"));
  ASSERT_TRUE(write_file(at.path("rows.jsonl"), "{\"text\": \"the of and to in that for it\"}\n"));
  JobSpec spec = family_spec(at, "llama", true);
  spec.model = at.path("wide");
  spec.data.train = spec.data.validation = {at.path("rows.jsonl")};
  spec.data.format = "jsonl";
  spec.train.batch = 1;
  spec.stop.max_epochs = 0;
  spec.stop.max_steps = 2;
  for (const char* precision : {"bf16", "f32"}) {
    spec.train.precision = precision;
    const MemoryLimit limit(std::size_t{64} << 20);

    const Heard heard = run(spec, ++last_run);

    EXPECT_EQ(heard.steps.size(), 2u) << precision;
  }
}

TEST_F(PeerFaults, SecondStartIsWarm) {  // lumigator#694, vllm#48193
  const Heard first = run(tiny_spec(at), 1, 1);
  const Heard second = run(tiny_spec(at, 1), 2, 1);
  const Heard third = run(tiny_spec(at), 3, 1);

  EXPECT_EQ(first.last<RunStarted>().how, StartKind::kCold);
  EXPECT_EQ(second.last<RunStarted>().how, StartKind::kWarm);
  EXPECT_EQ(third.last<RunStarted>().how, StartKind::kSwap);
}

TEST_F(PeerFaults, SaveOnNotice) {  // ray#63968: lost everything since the last periodic save
  const Heard heard = run(tiny_spec(at), 1, 17);

  EXPECT_EQ(heard.checkpoint(1).step, 17);
  EXPECT_EQ(heard.last<RunStopped>().steps, std::vector<std::int64_t>{17});
}

}  // namespace
}  // namespace ymir
