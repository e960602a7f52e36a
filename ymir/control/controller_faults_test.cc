// What the controller does when workers, places and reports fail it, and with held or cancelled
// jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/control/controller_fixture.h"

namespace ymir {
namespace {

using namespace testing;  // the fixture's names
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ControllerTest, RestartsALostRunAtOnceFromItsLastCheckpoint) {
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

TEST_F(ControllerTest, FailsAJobThatCrashesThreeTimesByItself) {
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

TEST_F(ControllerTest, WaitsLongerEachTimeAStartFailsWithoutProgress) {
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

TEST_F(ControllerTest, BlamesNeitherOfTwoJobsInOneCrashedProcess) {
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

TEST_F(ControllerTest, MovesTheRunsOfALostPlace) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  happen({PlaceReady{.place = PlaceId{2}, .node = "m", .num_slots = 1}});

  happen({PlaceLost{.place = PlaceId{1}, .why = "lease over"}});

  EXPECT_EQ(newest_start().place, PlaceId{2});
  EXPECT_EQ(job(kA).faults, 0);
  EXPECT_EQ(state().num_gpus(), 1);
}

TEST_F(ControllerTest, HoldsAJobAtItsNextBoundaryAndReleasesItAgain) {
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (!now.jobs.at(kA).held) plan.push_back(normal(kA));
    return plan;
  };
  start(1);
  submit({kA});

  happen({JobHeld{kA}});
  const JobState while_held = job(kA).state;
  round();
  const bool ran_while_held = static_cast<bool>(job(kA).run);
  happen({JobReleased{kA}});

  EXPECT_EQ(while_held, JobState::kPreempted);
  EXPECT_FALSE(ran_while_held);
  EXPECT_TRUE(job(kA).run);
}

TEST_F(ControllerTest, ChargesNothingToACancelledJobWhileItsWorkerStops) {
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (!now.jobs.at(kA).ended()) plan.push_back(normal(kA));
    return plan;
  };
  start(1);
  submit({kA});
  world_.on_stop = [](const StopRun&) {};
  happen({JobFinished{.job = kA, .outcome = Outcome::kCancelled, .reason = "cancelled"}},
         Seconds(10));
  const Seconds charged = job(kA).busy;
  const int free_meanwhile = state().free_gpus();
  const RunId run = state().runs.begin()->first;

  happen({RunStopped{.run = run, .why = "cancelled"}}, Seconds(100));

  EXPECT_EQ(charged, Seconds(10));
  EXPECT_EQ(job(kA).busy, charged);
  EXPECT_EQ(free_meanwhile, 0);
  EXPECT_EQ(state().free_gpus(), 1);
  EXPECT_TRUE(world_.asked_for<StopRun>().back().now);
}

TEST_F(ControllerTest, DropsReportsThatComeTwiceOrTooLateOrFromTheWrongPlace) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  const RunId run = job(kA).run;
  finish(kA);
  const std::uint64_t seq = state().seq;

  happen({RunStarted{.run = run}, JobFinished{.job = kA, .reason = "target", .run = run},
          ScriptedWorld::checkpoint(kA, run, 70), RunStopped{.run = run}, RunLost{.run = run},
          PlaceLost{.place = PlaceId{9}}, DataChecked{JobId{77}, {}}, PlanAdopted{.round = 99},
          FlowAuthorised{}});

  EXPECT_EQ(state().seq, seq);
  EXPECT_EQ(controller_->num_refused(), 9u);
}

TEST_F(ControllerTest, TakesNoFileOutsideOfTheJobsOwnFolder) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  auto elsewhere = ScriptedWorld::checkpoint(kA, job(kA).run, 5);
  elsewhere.path = "/etc";
  auto climbing = ScriptedWorld::checkpoint(kA, job(kA).run, 5);
  climbing.path = "/state/artifacts/j1/../j2/step-5";

  happen({elsewhere, climbing});

  EXPECT_EQ(controller_->num_refused(), 2u);
  EXPECT_FALSE(job(kA).checkpoint);
}

}  // namespace
}  // namespace ymir
