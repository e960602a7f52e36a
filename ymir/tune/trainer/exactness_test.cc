// What must be exact whatever happens in between: stops, lack of memory, the method that trains.
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "ymir/base/json.h"
#include "ymir/tune/session.h"
#include "ymir/tune/trainer/tiny_job.h"

namespace ymir {
namespace {

using testing::bytes_of;
using testing::hear;
using testing::Heard;
using testing::tensors_of;
using testing::tiny_run;
using testing::tiny_session;
using testing::tiny_spec;
using testing::tiny_task;
using testing::with_stops;
using testing::Workspace;

TEST(Exactness, SecondPreemptionInOneEpochAndAtItsEdgesChangesNoBit) {  // 10 steps an epoch
  const Workspace at;
  const auto session = tiny_session(at);
  const JobSpec spec = tiny_spec(at);
  const std::string whole = with_stops(*session, tiny_task(at, spec, 1), {});

  std::uint64_t job = 1;
  for (const std::vector<std::int64_t>& stops :
       {std::vector<std::int64_t>{3, 4, 2}, {13, 1, 1}, {10, 10}, {9, 1, 1}, {1, 1, 1, 1}})
    EXPECT_EQ(with_stops(*session, tiny_task(at, spec, ++job), stops), whole)
        << ::testing::PrintToString(stops);
}

// Each value is summed by one thread in one order, however the work was shared out.
TEST(Exactness, NumberOfThreadsChangesNoBit) {
  for (const char* precision : {"f32", "bf16"}) {
    std::vector<std::string> trained;
    for (const int threads : {1, 2, 3}) {
      const Workspace at;
      SessionOptions options;
      options.cache = at.path("cache");
      options.num_threads = threads;
      const auto session = Session::open(options);
      ASSERT_TRUE(session);
      JobSpec spec = tiny_spec(at);
      spec.train.precision = precision;
      trained.push_back(with_stops(**session, tiny_task(at, spec, 1), {}));
    }

    EXPECT_EQ(trained[1], trained[0]);
    EXPECT_EQ(trained[2], trained[0]);
  }
}

// The next `failures` allocations of at least `least` bytes fail.
class ScarceMemory final : public c10::Allocator {
 public:
  ScarceMemory(int failures, std::size_t least)
      : plenty_(c10::GetCPUAllocator()), failures_(failures), least_(least) {
    c10::SetCPUAllocator(this, 100);
  }
  ~ScarceMemory() override { c10::SetCPUAllocator(plenty_, 100); }
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes >= least_ && failures_ > 0) {
      --failures_;
      throw std::bad_alloc();
    }
    return plenty_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return plenty_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    plenty_->copy_data(to, from, count);
  }
  int failures_left() const { return failures_; }

 private:
  c10::Allocator* plenty_;
  int failures_;
  std::size_t least_;
};

TEST(Exactness, OomKeepsTheGlobalBatch) {  // 16 rows, then 8, then 4 at once: the same steps
  const Workspace at;
  const auto session = tiny_session(at);
  JobSpec spec = tiny_spec(at);
  spec.stop.max_epochs = 1;
  spec.train.dropout = 0;
  const Heard plenty = hear(*session, tiny_run({tiny_task(at, spec, 1)}, 1));

  Heard scarce;
  {
    const ScarceMemory memory(2, 40'000);
    scarce = hear(*session, tiny_run({tiny_task(at, spec, 2)}, 2));
    EXPECT_EQ(memory.failures_left(), 0);
  }

  ASSERT_EQ(scarce.steps.size(), plenty.steps.size());
  for (std::size_t i = 0; i < plenty.steps.size(); ++i) {
    EXPECT_EQ(scarce.steps[i].tokens, plenty.steps[i].tokens);
    EXPECT_NEAR(scarce.steps[i].loss, plenty.steps[i].loss, 1e-3);
  }
  const Json state = Json::parse(bytes_of(scarce.checkpoint(2).path + "/state.json"));
  EXPECT_EQ(state["progress"]["micro_rows"], 4);
}

TEST(Exactness, ResumeAfterMemoryRanOutGoesOnInTheSameShares) {
  const Workspace at;
  const auto session = tiny_session(at);
  JobSpec spec = tiny_spec(at);
  spec.stop.max_epochs = 2;
  std::string whole, stopped;
  {
    const ScarceMemory memory(1, 40'000);
    whole = with_stops(*session, tiny_task(at, spec, 1), {});
  }
  {
    const ScarceMemory memory(1, 40'000);
    stopped = with_stops(*session, tiny_task(at, spec, 2), {3, 5});
  }

  EXPECT_EQ(stopped, whole);
}

TEST(Exactness, ARowThatDoesNotFitIsSaidSo) {
  const Workspace at;
  const auto session = tiny_session(at);
  JobSpec spec = tiny_spec(at);
  spec.method.rank = 1;  // the adapter itself is smaller than what fails below
  hear(*session, tiny_run({tiny_task(at, spec, 1)}, 1), 1);  // everything is loaded

  Result<> result = Ok{};
  {
    const ScarceMemory memory(1000, 4'000);
    result = session->run(tiny_run({tiny_task(at, spec, 2)}, 2), RunReports{[](auto&) {}, {}},
                          [] { return StopWish::kGoOn; });
  }

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr("does_not_fit"));
}

class Method : public ::testing::TestWithParam<const char*> {
 protected:
  JobSpec spec(const Workspace& at) const {
    JobSpec spec = tiny_spec(at);
    spec.method.kind = GetParam();
    spec.method.targets = {};
    spec.stop.max_epochs = 6;
    spec.train.lr = 3e-3;
    spec.method.width = 8;
    spec.method.length = 4;
    spec.method.layers = 1;
    if (spec.method.kind == "prefix") spec.train.lr = 5e-2;  // starts far from where it must go
    if (spec.method.kind == "dora") {
      spec.method.kind = "lora";
      spec.method.magnitude = spec.method.rank_stabilised = true;
    }
    return spec;
  }
};

// The export is read back and compared bit for bit inside the run.
TEST_P(Method, LearnsIsExportedAndEndsBitEqualAfterStops) {
  const Workspace at;
  const auto session = tiny_session(at);
  const Heard heard = hear(*session, tiny_run({tiny_task(at, spec(at), 1)}, 1));

  const auto finished = heard.last<JobFinished>();
  EXPECT_EQ(finished.outcome, Outcome::kSucceeded);
  ASSERT_GT(heard.steps.size(), 20u);
  EXPECT_LT(heard.steps.back().loss, 0.9 * heard.steps.front().loss);
  EXPECT_EQ(with_stops(*session, tiny_task(at, spec(at), 2), {7, 20}),
            tensors_of(heard.checkpoint(1)));
}

TEST_P(Method, IsEvaluatedFromItsFilesToTheMetricsOfTheRun) {
  const Workspace at;
  const auto session = tiny_session(at);
  const Heard heard = hear(*session, tiny_run({tiny_task(at, spec(at), 1)}, 1));
  EvaluateRequest request;
  request.model = at.path("model");
  request.adapter = heard.last<JobFinished>().adapter;
  request.data = spec(at).data;

  const auto metrics = session->evaluate(request);

  ASSERT_TRUE(metrics) << metrics.error().message;
  EXPECT_EQ(metrics->at("accuracy"), heard.last<JobFinished>().metrics.at("accuracy"));
}

INSTANTIATE_TEST_SUITE_P(Exactness, Method,
                         ::testing::Values("lora", "dora", "bottleneck", "prefix", "bitfit",
                                           "top_k", "full"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace ymir
