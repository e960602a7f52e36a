#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/control/controller_fixture.h"

namespace ymir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReconcileTest : public ControllerTest {
 protected:
  // Of kA: nothing is heard of it, nor of its stop.
  RunId ask_for_a_run_that_never_begins() {
    world_.on_start = [](const StartRun&) {};
    world_.on_stop = [](const StopRun&) {};
    policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
    start(1);
    submit({kA});
    return job(kA).run;
  }
};

TEST_F(ReconcileTest, StartsOnlyOnSlotsThatAreFreeAlready) {
  bool second = false;
  policy_.plan = [&](const Snapshot&) { return std::vector{normal(second ? kB : kA)}; };
  start(1);
  submit({kA, kB});
  world_.on_stop = [](const StopRun&) {};  // the worker takes its time
  second = true;

  round();
  const bool waited = !job(kB).run;
  world_.end_run(job(kA).run);
  happen({});

  EXPECT_TRUE(waited);
  EXPECT_TRUE(job(kB).run);
  EXPECT_EQ(job(kA).state, JobState::kPreempted);
}

TEST_F(ReconcileTest, ResumesAPreemptedJobFromItsCheckpoint) {
  bool b_runs = false;
  policy_.plan = [&](const Snapshot&) { return std::vector{normal(b_runs ? kB : kA)}; };
  start(1);
  submit({kA, kB});
  world_.train_to(kA, job(kA).run, 17);

  b_runs = true;
  round();
  b_runs = false;
  round();

  EXPECT_EQ(newest_start().tasks[0].job, kA);
  EXPECT_EQ(newest_start().tasks[0].from_step, 17);
  EXPECT_THAT(newest_start().tasks[0].checkpoint, HasSubstr("step-17"));
  EXPECT_EQ(newest_start().tasks[0].checkpoint_hash, "h17");
}

TEST_F(ReconcileTest, KeepsARunThatThePlanWantsAsItIs) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  const RunId run = job(kA).run;

  round();
  round();

  EXPECT_EQ(job(kA).run, run);
  EXPECT_THAT(world_.asked_for<StopRun>(), IsEmpty());
}

TEST_F(ReconcileTest, RestartsARunForAnotherNumberOfGpus) {
  int gpus = 1;
  spec_.max_gpus = 2;
  policy_.plan = [&](const Snapshot&) { return std::vector{normal(kA, gpus)}; };
  start(2);
  submit({kA});

  gpus = 2;
  round();

  EXPECT_EQ(newest_start().slots.size(), 2u);
  EXPECT_EQ(state().free_gpus(), 0);
}

TEST_F(ReconcileTest, RestartsALostRunAtOnceFromItsLastCheckpoint) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  world_.reach(kA, job(kA).run, 12);
  happen({});

  happen({RunLost{.run = job(kA).run, .why = "worker_died", .fault = true}});

  EXPECT_EQ(newest_start().tasks[0].from_step, 12);
  EXPECT_EQ(job(kA).faults, 1);
  EXPECT_EQ(job(kA).state, JobState::kRunning);
}

TEST_F(ReconcileTest, FailsAJobThatCrashesThreeTimesByItself) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});

  for (int i = 0; i < 3; ++i) {
    happen({}, Seconds(100));
    happen({RunLost{.run = job(kA).run, .why = "worker_died", .fault = true}});
  }

  EXPECT_EQ(job(kA).state, JobState::kFailed);
  EXPECT_EQ(job(kA).result->code, "worker_crashed");
  EXPECT_EQ(state().free_gpus(), 1);
}

TEST_F(ReconcileTest, WaitsLongerEachTimeAStartFailsWithoutProgress) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  happen({RunLost{.run = job(kA).run, .why = "start_failed"}});
  happen({RunLost{.run = job(kA).run, .why = "start_failed"}});

  const bool at_once = static_cast<bool>(job(kA).run);
  happen({}, Seconds(3));

  EXPECT_FALSE(at_once);
  EXPECT_TRUE(job(kA).run);
  EXPECT_EQ(job(kA).faults, 0);
}

TEST_F(ReconcileTest, StopsARunThatDoesNotBeginAndKeepsItsSlotsUntilItHasEnded) {
  const RunId run = ask_for_a_run_that_never_begins();

  happen({}, options_.start_timeout);
  const auto stops = world_.asked_for<StopRun>();
  const int free_before = state().free_gpus();
  const std::size_t starts_before = world_.asked_for<StartRun>().size();
  happen({RunLost{.run = run, .why = "worker_died: it did not stop in time"}});

  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].run, run);
  EXPECT_TRUE(stops[0].now);
  EXPECT_EQ(free_before, 0);
  EXPECT_EQ(world_.asked_for<StartRun>().size(), starts_before + 1);
  EXPECT_NE(job(kA).run, run);
}

TEST_F(ReconcileTest, LosesARunThatNeitherBeginsNorIsHeardOfWhenItIsStopped) {
  const RunId run = ask_for_a_run_that_never_begins();

  happen({}, options_.start_timeout);
  const bool kept = job(kA).run == run;
  happen({}, options_.start_timeout);

  EXPECT_TRUE(kept);
  EXPECT_NE(job(kA).run, run);
}

TEST_F(ReconcileTest, BlamesNeitherOfTwoJobsInOneCrashedProcess) {
  policy_.plan = [](const Snapshot& now) {
    if (now.jobs.at(kA).barred.contains(kB)) return std::vector{normal(kA), normal(kB)};
    return std::vector{spatial(kA, kB)};
  };
  start(2);
  submit({kA, kB});

  happen({RunLost{.run = job(kA).run, .why = "worker_died", .fault = true}});

  EXPECT_EQ(job(kA).faults, 0);
  EXPECT_EQ(job(kB).faults, 0);
  EXPECT_TRUE(job(kA).run && job(kB).run);
  EXPECT_NE(job(kA).run, job(kB).run);
}

TEST_F(ReconcileTest, MovesTheRunsOfALostPlace) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  happen({PlaceReady{.place = PlaceId{2}, .node = "m", .num_slots = 1}});

  happen({PlaceLost{.place = PlaceId{1}, .why = "lease over"}});

  EXPECT_EQ(newest_start().place, PlaceId{2});
  EXPECT_EQ(job(kA).faults, 0);
  EXPECT_EQ(state().num_gpus(), 1);
}

TEST_F(ReconcileTest, SleepsUntilABackoffHasPassedAndNotLess) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  for (int i = 0; i < 2; ++i) happen({RunLost{.run = job(kA).run, .why = "start_failed"}});

  happen({});
  const Time until = world_.newest_deadline;
  happen({PlaceLost{.place = PlaceId{1}}}, Seconds(10));  // passed, and no slot to start on
  happen({});
  const Time then = world_.newest_deadline;

  EXPECT_EQ(until - job(kA).lost_at, Seconds(2));
  EXPECT_GT(then, world_.now()) << "a deadline in the past would turn the loop for nothing";
}

TEST_F(ReconcileTest, AsksAgainWhenNobodyAnswersAndGivesUpAStartThatNeverComes) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  world_.on_start = [](const StartRun&) {};
  start(1);
  submit({kA});
  const StartRun first = newest_start();

  happen({}, Seconds(31));
  const StartRun again = newest_start();
  const std::size_t asked = world_.asked_for<StartRun>().size();
  happen({}, Seconds(300));

  EXPECT_EQ(asked, 2u);
  EXPECT_EQ(encode_line(Action(first)), encode_line(Action(again)));
  EXPECT_TRUE(world_.asked_for<StopRun>().back().now);
  EXPECT_NE(job(kA).run, first.run);
}

TEST_F(ReconcileTest, AsksAgainForAStopAndThenForOneAtOnce) {
  policy_.plan = [](const Snapshot& now) {
    return now.round == 0 ? std::vector{normal(kA)} : std::vector<Assignment>{};
  };
  start(1);
  submit({kA});
  world_.on_stop = [](const StopRun&) {};

  round();
  for (int i = 0; i < 3; ++i) happen({}, Seconds(31));

  std::vector<bool> at_once;
  for (const StopRun& stop : world_.asked_for<StopRun>()) at_once.push_back(stop.now);
  EXPECT_THAT(at_once, ElementsAre(false, false, true, true));
}

}  // namespace
}  // namespace ymir
