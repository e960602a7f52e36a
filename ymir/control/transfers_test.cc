#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/control/controller_fixture.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using TransferTest = ControllerTest;

TEST_F(TransferTest, RunsTheSourceFirstAndThenTheTargetFromItsAdapter) {
  policy_.plan = [](const Snapshot&) { return std::vector{temporal(kB, kA)}; };
  start(1);
  submit({kA, kB});
  const Mode mode_of_a = newest_start().mode;

  policy_.plan = [](const Snapshot&) { return std::vector<Assignment>{}; };
  finish(kA);

  EXPECT_EQ(mode_of_a, Mode::kNormal);
  EXPECT_EQ(newest_start().mode, Mode::kTemporal);
  EXPECT_EQ(newest_start().tasks[0].source, kA);
  EXPECT_EQ(newest_start().tasks[0].source_adapter, "/state/artifacts/j1/adapter");
  EXPECT_EQ(newest_start().tasks[0].source_hash, "final");
  EXPECT_EQ(newest_start().tasks[0].strength, 0.5);
  EXPECT_EQ(job(kB).transfers.at(0).partner, kA);
  EXPECT_THAT(kinds(kB), ::testing::Contains("FlowAuthorised"));
}

TEST_F(TransferTest, DropsTheProfilesStepsWhenAMergeBegins) {
  options_.profiling.enabled = true;
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (now.jobs.contains(kB) && now.jobs.at(kB).profile_settled) plan.push_back(temporal(kB, kA));
    return plan;
  };
  start(1);
  submit({kA});
  finish(kA);  // in its profile
  submit({kB});
  const RunId profile = job(kB).run;
  world_.reach(kB, profile, 9);
  world_.happen(ProfileFinished{.job = kB, .run = profile});
  world_.end_run(profile, "profile_done");

  happen({});

  EXPECT_EQ(newest_start().mode, Mode::kTemporal);
  EXPECT_EQ(newest_start().tasks[0].from_step, 0);
  EXPECT_EQ(job(kB).own_checkpoint->step, 9);
  EXPECT_TRUE(job(kB).merged);
}

TEST_F(TransferTest, RunsTheTargetAloneWhenItsSourceFails) {
  policy_.plan = [](const Snapshot&) { return std::vector{temporal(kB, kA)}; };
  start(1);
  submit({kA, kB});

  happen({JobFinished{.job = kA,
                      .outcome = Outcome::kFailed,
                      .reason = "failed",
                      .code = "diverged",
                      .run = job(kA).run}});

  EXPECT_EQ(newest_start().tasks[0].job, kB);
  EXPECT_EQ(newest_start().mode, Mode::kNormal);
}

TEST_F(TransferTest, RestartsThePartnerAloneAtOnceOnTheSameSlots) {
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (!now.jobs.at(kA).ended()) plan.push_back(spatial(kA, kB));
    return plan;
  };
  start(2);
  submit({kA, kB});
  const RunId pair = job(kA).run;
  const std::vector<int> slots = state().runs.at(pair).slots;
  world_.train_to(kB, pair, 40);
  world_.happen(ScriptedWorld::checkpoint(kB, pair, 40));
  world_.happen(JobFinished{.job = kA, .reason = "target", .run = pair, .step = 40});

  happen({RunStopped{.run = pair, .why = "partner_finished", .jobs = {kA, kB}, .steps = {40, 40}}});

  EXPECT_EQ(job(kA).state, JobState::kSucceeded);
  EXPECT_EQ(newest_start().tasks.size(), 1u);
  EXPECT_EQ(newest_start().tasks[0].job, kB);
  EXPECT_EQ(newest_start().tasks[0].from_step, 40);
  EXPECT_EQ(newest_start().slots, slots);
}

TEST_F(TransferTest, SplitsAPairAndBothGoOnFromTheirOwnCheckpoints) {
  spec_.max_gpus = 2;
  policy_.plan = [](const Snapshot& now) {
    if (now.jobs.at(kA).barred.contains(kB)) return std::vector{normal(kA), normal(kB)};
    return std::vector{spatial(kA, kB)};
  };
  beliefs_.outlooks = [](const Snapshot& now) {
    return std::vector{
        TransferOutlook{.run = now.jobs.at(kB).run, .job = kB, .helps = 0.01, .epochs = 1}};
  };
  start(2);
  submit({kA, kB});
  const RunId pair = job(kA).run;
  world_.train_to(kA, pair, 30);
  world_.train_to(kB, pair, 30);

  happen({EpochEvaluated{.job = kB, .run = pair, .evaluation = {.step = 30, .epoch = 1}}});

  EXPECT_THAT(world_.asked_for<StopRun>(), SizeIs(1));
  EXPECT_TRUE(job(kA).barred.contains(kB));
  EXPECT_TRUE(job(kB).barred.contains(kA));
  EXPECT_EQ(job(kB).transfers.at(0).verdict, Transfer::Verdict::kSplit);
  ASSERT_TRUE(job(kA).run && job(kB).run);
  EXPECT_EQ(world_.order(job(kA).run)->tasks[0].from_step, 30);
  EXPECT_EQ(world_.order(job(kB).run)->tasks[0].from_step, 30);
}

TEST_F(TransferTest, RestartsASplitTargetFromItsOwnCheckpointWhenThatIsSooner) {
  options_.profiling.enabled = true;
  options_.stop_loss.restart_below = 1;
  spec_.target = {"accuracy", 0.9};
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (!now.jobs.contains(kB) || !now.jobs.at(kB).profile_settled) return plan;
    plan.push_back(now.jobs.at(kB).barred.contains(kA) ? normal(kB) : temporal(kB, kA));
    return plan;
  };
  beliefs_.outlooks = [](const Snapshot& now) {
    return std::vector{TransferOutlook{.run = now.jobs.at(kB).run,
                                       .job = kB,
                                       .helps = 0.01,
                                       .epochs = 1,
                                       .observed = 0.5,
                                       .expected = 0.8}};
  };
  start(1);
  submit({kA});
  finish(kA);
  submit({kB});
  const RunId profile = job(kB).run;
  Profile measured;
  measured.evaluations = {{.step = 9, .epoch = 0.3, .metrics = {{"accuracy", 0.6}}}};
  world_.reach(kB, profile, 9);
  world_.happen(ProfileFinished{.job = kB, .run = profile, .profile = measured});
  world_.end_run(profile, "profile_done");
  happen({});
  const RunId merged = job(kB).run;
  world_.train_to(kB, merged, 30);

  happen({EpochEvaluated{.job = kB, .run = merged, .evaluation = {.step = 30, .epoch = 1}}});

  EXPECT_EQ(newest_start().mode, Mode::kNormal);
  EXPECT_EQ(newest_start().tasks[0].from_step, 9);
  EXPECT_THAT(newest_start().tasks[0].checkpoint, HasSubstr("step-9"));
  EXPECT_FALSE(job(kB).merged);
  ASSERT_THAT(job(kB).evaluations, SizeIs(1));
  EXPECT_EQ(job(kB).evaluations[0].step, 9);
}

TEST_F(TransferTest, TakesAKeptTargetBackWhenItsLeadIsLost) {
  policy_.plan = [](const Snapshot& now) {
    if (!now.jobs.contains(kB)) return std::vector<Assignment>{};
    return std::vector{now.jobs.at(kB).barred.contains(kA) ? normal(kB) : temporal(kB, kA)};
  };
  TransferOutlook outlook{.job = kB, .helps = 0.9, .epochs = 2};
  beliefs_.outlooks = [&](const Snapshot& now) {
    outlook.run = now.jobs.at(kB).run;
    return std::vector{outlook};
  };
  start(1);
  submit({kA, kB});
  finish(kA);
  const RunId merged = job(kB).run;
  const auto evaluated = [&](std::int64_t step) {
    world_.train_to(kB, merged, step);
    happen({EpochEvaluated{.job = kB, .run = merged, .evaluation = {.step = step}}});
    return job(kB).transfers.at(0).verdict;
  };

  const auto at_two_epochs = evaluated(20);
  outlook.epochs = 3;
  const auto while_ahead = evaluated(30);
  outlook = {.job = kB, .helps = 0.2, .epochs = 4, .restart_saves = 10};
  const auto when_behind = evaluated(40);

  EXPECT_EQ(at_two_epochs, Transfer::Verdict::kKept);
  EXPECT_EQ(while_ahead, Transfer::Verdict::kKept);
  EXPECT_EQ(when_behind, Transfer::Verdict::kSplit);
  EXPECT_EQ(std::ranges::count(kinds(kB), "RunKept"), 1);
  EXPECT_EQ(newest_start().mode, Mode::kNormal);
  EXPECT_TRUE(job(kB).barred.contains(kA));
}

TEST_F(TransferTest, GoesOnAsMergedWhenATargetIsPreempted) {
  bool c_runs = false;
  policy_.plan = [&](const Snapshot&) {
    return std::vector{c_runs ? normal(kC) : temporal(kB, kA)};
  };
  start(1);
  submit({kA, kB, kC});
  finish(kA);
  world_.train_to(kB, job(kB).run, 20);

  c_runs = true;
  round();
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kB)}; };
  round();

  EXPECT_EQ(newest_start().mode, Mode::kTemporal);
  EXPECT_EQ(newest_start().tasks[0].from_step, 20);
  EXPECT_FALSE(newest_start().tasks[0].source) << "resumed from its own checkpoint";
  EXPECT_EQ(job(kB).transfers.size(), 1u);
  EXPECT_EQ(job(kB).transfers[0].run, job(kB).run);
}

TEST_F(TransferTest, NeverLetsAJobLearnFromAnotherDomain) {
  policy_.plan = [](const Snapshot&) { return std::vector{temporal(kB, kA)}; };
  start(1);
  JobSpec stranger = spec_;
  stranger.sharing.trust_domain = "other";
  submit({kA});
  happen({JobSubmitted{kB, stranger}});

  round();

  const auto report = check_log(*log_);
  EXPECT_EQ(report->flows, 0u);
  EXPECT_FALSE(state().wish) << "check_plan refuses it, the round is skipped";
}

}  // namespace
}  // namespace ymir
