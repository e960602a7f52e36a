// Commands and published snapshots from other threads, beside a running loop. Also run under
// ThreadSanitizer (preset tsan).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "ymir/control/controller.h"
#include "ymir/control/scripted_policy.h"
#include "ymir/control/scripted_world.h"
#include "ymir/core/codec.h"
#include "ymir/store/check_log.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;

// Blocks like a live world: until something happened, somebody wakes it, or it is closed.
class BlockingWorld final : public World {
 public:
  Time now() const override {
    const std::scoped_lock lock(mutex_);
    return now_;
  }
  std::vector<Event> wait(Time) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return woken_ || closed_ || !queue_.empty(); });
    woken_ = false;
    now_ = now_ + Seconds(0.001);
    return std::exchange(queue_, {});
  }
  void wake() override {
    const std::scoped_lock lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  Result<> request(const Action& action) override {
    if (const auto* check = std::get_if<CheckData>(&action))
      say(DataChecked{check->job, {.total_steps = 90}});
    if (const auto* start = std::get_if<StartRun>(&action)) say(RunStarted{.run = start->run});
    if (const auto* stop = std::get_if<StopRun>(&action)) say(RunStopped{.run = stop->run});
    return Ok{};
  }
  bool finished() const override {
    const std::scoped_lock lock(mutex_);
    return closed_ && queue_.empty();
  }
  void say(EventBody body) {
    const std::scoped_lock lock(mutex_);
    queue_.push_back({.at = now_, .body = std::move(body)});
    changed_.notify_one();
  }
  void close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    changed_.notify_one();
  }

 private:
  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<Event> queue_{};
  bool woken_ = false, closed_ = false;
  Time now_ = from_seconds(1);
};

class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() {
    policy_.plan = [](const Snapshot& now) {
      std::vector<Assignment> plan;
      for (const auto& [id, job] : now.jobs)
        if (job.active() && std::ssize(plan) < now.num_gpus())
          plan.push_back({.job = id, .gpus = 1});
      return plan;
    };
    auto made = Controller::create({}, world_, *log_, policy_, beliefs_.bind());
    EXPECT_TRUE(made);
    controller_ = *std::move(made);
    world_.say(PlaceReady{.place = PlaceId{1}, .num_slots = 2});
    loop_ = std::thread([this] { EXPECT_TRUE(controller_->run()); });
  }
  ~CommandsTest() override { end(); }
  void end() {
    if (!loop_.joinable()) return;
    world_.close();
    loop_.join();
  }

  BlockingWorld world_{};
  ScriptedPolicy policy_{};
  ScriptedBeliefs beliefs_{};
  std::unique_ptr<EventLog> log_ = make_memory_log();
  std::unique_ptr<Controller> controller_{};
  std::thread loop_{};
};

TEST_F(CommandsTest, GivesIdsThatAreDurableAndVisibleWhenSubmitReturns) {
  const auto ids = controller_->submit({{.name = "first"}, {.name = "second"}});

  ASSERT_TRUE(ids);
  ASSERT_EQ(ids->size(), 2u);
  const auto seen = controller_->snapshot();
  EXPECT_EQ(seen->jobs.at((*ids)[0]).spec.name, "first");
  EXPECT_EQ(seen->jobs.at((*ids)[1]).spec.name, "second");
  end();
  EXPECT_EQ(replay(*log_)->jobs.size(), 2u);
}

TEST_F(CommandsTest, HoldsAJobThatIsSubmittedHeld) {
  const auto ids = controller_->submit({{.name = "later"}}, true);

  ASSERT_TRUE(ids);
  EXPECT_TRUE(controller_->snapshot()->jobs.at(ids->front()).held);
  EXPECT_TRUE(controller_->release(ids->front()));
  EXPECT_FALSE(controller_->snapshot()->jobs.at(ids->front()).held);
}

TEST_F(CommandsTest, SaysWhyACommandIsRefused) {
  const JobId job = controller_->submit({{.name = "x"}})->front();

  const auto unknown = controller_->cancel(JobId{99});
  const auto first = controller_->cancel(job, "user-a");
  const auto second = controller_->cancel(job, "user-b");
  const auto held = controller_->release(job);

  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("j1 has already ended"));
  EXPECT_FALSE(held);
  end();
  const auto events = log_->read(1, 100);
  const auto end_of_job = std::ranges::find_if(
      *events, [](const Event& event) { return std::holds_alternative<JobFinished>(event.body); });
  EXPECT_EQ(end_of_job->actor, "user-a");
}

TEST_F(CommandsTest, TakesCommandsFromManyThreadsBesideReaders) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const auto ids = controller_->submit({{.name = "n"}, {.name = "m"}});
        ASSERT_TRUE(ids);
        (void)controller_->hold(ids->front());
        (void)controller_->cancel(ids->back());
      }
    });
  threads.emplace_back([&] {
    std::uint64_t newest = 0;
    for (int i = 0; i < 200; ++i) {
      const auto seen = controller_->snapshot();
      EXPECT_GE(seen->seq, newest);
      EXPECT_GE(seen->free_gpus(), 0);
      newest = seen->seq;
      (void)controller_->progress();
    }
  });

  for (std::thread& thread : threads) thread.join();
  end();

  const auto state = replay(*log_);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->jobs.size(), 80u);
  EXPECT_EQ(encode(*state), encode(controller_->state()));
  EXPECT_TRUE(check_log(*log_)->sound());
}

TEST_F(CommandsTest, AnswersCommandsAfterItsEnd) {
  end();

  const auto late = controller_->submit({{.name = "late"}});

  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kUnavailable);
}

TEST(Commands, AreAnsweredWithTheErrorWhenTheLogFails) {
  BlockingWorld world;
  ScriptedPolicy policy;
  ScriptedBeliefs beliefs;
  const auto log =
      make_faulty_log(make_memory_log(), 2, {ErrorCode::kExhausted, "no space left on device"});
  auto controller = Controller::create({}, world, *log, policy, beliefs.bind());
  ASSERT_TRUE(controller);
  Result<> ended = Ok{};
  std::thread loop([&] { ended = (*controller)->run(); });

  const auto ids = (*controller)->submit({{.name = "x"}});
  loop.join();

  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message, "no space left on device");
  EXPECT_FALSE(ended);
}

}  // namespace
}  // namespace ymir
