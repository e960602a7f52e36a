#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/control/controller_fixture.h"

namespace ymir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ControllerTest, TakesAJobFromSubmissionToSuccess) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);

  submit({kA});
  finish(kA);

  EXPECT_EQ(job(kA).state, JobState::kSucceeded);
  EXPECT_THAT(kinds(kA), ElementsAre("JobSubmitted", "DataCheckStarted", "DataChecked",
                                     "RunRequested", "JobFinished"));
  EXPECT_THAT(state().runs, IsEmpty());
  EXPECT_EQ(state().free_gpus(), 1);
}

TEST_F(ControllerTest, AppendsTheIntentBeforeTheRequestLeaves) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  std::vector<std::string> in_log;
  world_.on_start = [&](const StartRun& order) {
    const auto events = log_->read(1, 100);
    for (const Event& event : *events)
      if (run_of(event.body) == order.run) in_log.emplace_back(kind_of(event.body));
  };

  submit({kA});

  EXPECT_THAT(in_log, ElementsAre("RunRequested"));
}

TEST_F(ControllerTest, FailsAJobWhoseDataIsRefused) {
  world_.on_check = [&](const CheckData& check) {
    world_.happen(DataRefused{check.job, {"train.csv:7:1: row has 2 columns, the header has 3"}});
  };
  start(1);

  submit({kA});

  EXPECT_EQ(job(kA).state, JobState::kFailed);
  EXPECT_EQ(job(kA).result->code, "invalid_data");
  EXPECT_THAT(job(kA).result->text, HasSubstr("train.csv:7:1"));
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

TEST_F(ControllerTest, GoesOnAfterARestartFromTheNewestCheckpoint) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  world_.reach(kA, job(kA).run, 33);
  happen({});
  const RunId before = job(kA).run;

  restart();
  const bool closed = state().runs.empty() && state().places.empty();
  happen({PlaceReady{.place = PlaceId{1}, .node = "n", .num_slots = 1}});

  EXPECT_TRUE(closed);
  EXPECT_GT(job(kA).run, before);
  EXPECT_EQ(newest_start().tasks[0].from_step, 33);
  EXPECT_EQ(job(kA).faults, 0);
}

TEST_F(ControllerTest, ChecksDataAgainAfterARestart) {
  world_.on_check = [](const CheckData&) {};
  start(1);
  submit({kA});
  world_.on_check = [&](const CheckData& check) {
    world_.happen(DataChecked{check.job, world_.facts});
  };

  restart();
  happen({});

  EXPECT_EQ(job(kA).state, JobState::kQueued);
}

TEST_F(ControllerTest, CancellingAJobEndsTheCheckOfItsData) {
  world_.on_check = [](const CheckData&) {};
  start(1);
  submit({kA, kB});

  happen({JobFinished{.job = kA, .outcome = Outcome::kCancelled, .reason = "cancelled"}});

  const auto stopped = world_.asked_for<StopCheck>();
  ASSERT_EQ(stopped.size(), 1u);
  EXPECT_EQ(stopped[0].job, kA);
  EXPECT_EQ(job(kA).state, JobState::kCancelled);
}

TEST_F(ControllerTest, ShowsTheEstimatorEveryEventOnceAlsoAfterARestart) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  const std::uint64_t seen = beliefs_.observed, written = log_->last_seq();
  beliefs_.observed = 0;

  restart();

  EXPECT_EQ(seen, written);
  EXPECT_EQ(beliefs_.observed, log_->last_seq());
}

TEST_F(ControllerTest, EndsWhenTheLogCannotBeWritten) {
  log_ = make_faulty_log(make_memory_log(), 3, {ErrorCode::kUnavailable, "input/output error"});
  auto made = Controller::create(options_, world_, *log_, policy_, beliefs_.bind());
  ASSERT_TRUE(made);
  world_.happen(PlaceReady{.place = PlaceId{1}, .num_slots = 1});
  ASSERT_TRUE((*made)->run());
  world_.happen(JobSubmitted{kA, spec_});

  const Result<> ended = (*made)->run();

  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "input/output error");
  EXPECT_THAT(world_.asked, IsEmpty()) << "nothing was asked that is not in the log";
  EXPECT_FALSE((*made)->snapshot()->jobs.contains(kA)) << "nor shown";
}

TEST_F(ControllerTest, RefusesOptionsOutOfRange) {
  options_.round = Seconds(0);
  const auto round = Controller::create(options_, world_, *log_, policy_, beliefs_.bind());
  options_ = {};
  options_.profiling.share = 2;
  const auto share = Controller::create(options_, world_, *log_, policy_, beliefs_.bind());

  ASSERT_FALSE(round);
  EXPECT_THAT(round.error().message, HasSubstr("round must be > 0"));
  ASSERT_FALSE(share);
  EXPECT_THAT(share.error().message, HasSubstr("profiling.share"));
}

}  // namespace
}  // namespace ymir
