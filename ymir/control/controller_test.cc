#include "ymir/control/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ymir/control/controller_fixture.h"

namespace ymir {
namespace {

using namespace testing;  // the fixture's names
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

TEST_F(ControllerTest, StartsOnlyOnSlotsThatAreFreeAlready) {
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

TEST_F(ControllerTest, ResumesAPreemptedJobFromItsCheckpoint) {
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

TEST_F(ControllerTest, KeepsARunThatThePlanWantsAsItIs) {
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);
  submit({kA});
  const RunId run = job(kA).run;

  round();
  round();

  EXPECT_EQ(job(kA).run, run);
  EXPECT_THAT(world_.asked_for<StopRun>(), IsEmpty());
}

TEST_F(ControllerTest, RestartsARunForAnotherNumberOfGpus) {
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

TEST_F(ControllerTest, RunsTheSourceFirstAndThenTheTargetFromItsAdapter) {
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

TEST_F(ControllerTest, DropsTheProfilesStepsWhenAMergeBegins) {
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

TEST_F(ControllerTest, RunsTheTargetAloneWhenItsSourceFails) {
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

TEST_F(ControllerTest, RestartsThePartnerAloneAtOnceOnTheSameSlots) {
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

TEST_F(ControllerTest, SplitsAPairAndBothGoOnFromTheirOwnCheckpoints) {
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

TEST_F(ControllerTest, RestartsASplitTargetFromItsOwnCheckpointWhenThatIsSooner) {
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

TEST_F(ControllerTest, GoesOnAsMergedWhenATargetIsPreempted) {
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

TEST_F(ControllerTest, ProfilesANewJobAndRunsItAfterwards) {
  options_.profiling.enabled = true;
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (now.jobs.at(kA).profile_settled) plan.push_back(normal(kA));
    return plan;
  };
  start(1);
  submit({kA});
  const StartRun profile = newest_start();
  const JobState meanwhile = job(kA).state;
  Profile measured;
  measured.seconds = Seconds(4);
  world_.reach(kA, profile.run, 9);
  world_.happen(ProfileFinished{.job = kA, .run = profile.run, .profile = measured});
  world_.end_run(profile.run, "profile_done");

  happen({});

  EXPECT_TRUE(profile.profile);
  EXPECT_EQ(profile.profile_steps, 10) << "a tenth of 90 steps, at least 10";
  EXPECT_EQ(meanwhile, JobState::kProfiling);
  EXPECT_FALSE(newest_start().profile);
  EXPECT_EQ(newest_start().tasks[0].from_step, 9) << "the profile's steps count";
  EXPECT_EQ(job(kA).profile->seconds, Seconds(4));
}

TEST_F(ControllerTest, ProfilesAJobInItsFirstStepsWhenThePlanStartsItUnprofiled) {
  options_.profiling.enabled = true;
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan{normal(kA)};
    if (now.jobs.contains(kB)) plan.push_back(normal(kB));
    return plan;
  };
  start(2);
  world_.on_start = [](const StartRun&) {};

  submit({kA, kB});

  for (const StartRun& order : world_.asked_for<StartRun>()) EXPECT_TRUE(order.profile);
  EXPECT_THAT(world_.asked_for<StartRun>(), SizeIs(2));
}

TEST_F(ControllerTest, SleepsUntilABackoffHasPassedAndNotLess) {
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

TEST_F(ControllerTest, StartsJobsOverTheQuotaWithoutAProfile) {
  options_.profiling.enabled = true;
  options_.profiling.share = 0;
  policy_.plan = [](const Snapshot&) { return std::vector{normal(kA)}; };
  start(1);

  submit({kA});

  EXPECT_FALSE(newest_start().profile);
  EXPECT_EQ(job(kA).state, JobState::kRunning);
}

TEST_F(ControllerTest, ProbesSourcesInTheProfileAndForJobsThatWait) {
  options_.profiling.enabled = true;
  beliefs_.probes = [](const Snapshot& now, JobId target) {
    std::vector<Estimator::ProbeWish> wishes;
    for (const auto& [id, other] : now.jobs)
      if (id != target && !other.adapter().empty() &&
          std::ranges::none_of(now.jobs.at(target).probes,
                               [&, source = id](const Probe& p) { return p.source == source; }))
        wishes.push_back({id, 0.5});
    return wishes;
  };
  policy_.plan = [](const Snapshot& now) {
    std::vector<Assignment> plan;
    if (!now.jobs.at(kA).ended() && now.jobs.at(kA).profile_settled) plan.push_back(normal(kA));
    return plan;
  };
  const auto end_profile = [&](JobId id, std::vector<Probe> probes) {
    const RunId run = job(id).run;
    Profile measured;
    measured.probes = std::move(probes);
    world_.happen(ProfileFinished{.job = id, .run = run, .profile = measured});
    world_.end_run(run, "profile_done");
    happen({});
  };
  start(1);
  submit({kA});
  world_.reach(kA, job(kA).run, 9);
  end_profile(kA, {});
  submit({kB});
  world_.end_run(job(kA).run);  // A leaves the slot for B's profile
  happen({});

  finish(kA);
  const StartRun in_profile = newest_start();
  end_profile(kB, {});
  const StartRun while_waiting = newest_start();
  end_profile(kB, {{.source = kA, .strength = 0.5, .value = 0.3}});

  EXPECT_TRUE(in_profile.profile);
  EXPECT_EQ(in_profile.profile_steps, 10);
  ASSERT_THAT(in_profile.probes, SizeIs(1));
  EXPECT_EQ(in_profile.probes[0].source_hash, "final");
  EXPECT_TRUE(while_waiting.profile);
  EXPECT_EQ(while_waiting.profile_steps, 0);
  EXPECT_THAT(while_waiting.probes, SizeIs(1));
  ASSERT_THAT(job(kB).probes, SizeIs(1));
  EXPECT_EQ(job(kB).probes[0].value, 0.3);
  EXPECT_EQ(job(kB).state, JobState::kQueued);
}

TEST_F(ControllerTest, NeverLetsAJobLearnFromAnotherDomain) {
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

TEST_F(ControllerTest, DropsFromAPlanWhatChangedWhileItWasMade) {
  policy_.plan = [&](const Snapshot& now) {
    if (now.jobs.at(kA).run) {
      world_.happen(JobFinished{.job = kA,
                                .outcome = Outcome::kSucceeded,
                                .reason = "target",
                                .run = now.jobs.at(kA).run});
      return std::vector{normal(kA), normal(kB)};
    }
    return std::vector{normal(kA)};
  };
  start(2);
  submit({kA, kB});

  round();

  ASSERT_TRUE(state().wish);
  EXPECT_THAT(state().wish->dropped, ElementsAre(normal(kA)));
  ASSERT_THAT(state().wish->plan.assignments, SizeIs(1));
  EXPECT_EQ(state().wish->plan.assignments[0].what, normal(kB));
}

TEST_F(ControllerTest, KeepsTheOldPlanWhenARoundFails) {
  class Broken final : public Policy {
   public:
    std::string_view name() const override { return "broken"; }
    Result<Decision> decide(const Round&) const override {
      return Error{ErrorCode::kExhausted, "no plan within the effort"};
    }
  } broken;
  auto made = Controller::create(options_, world_, *log_, broken, beliefs_.bind());
  ASSERT_TRUE(made);
  controller_ = *std::move(made);
  happen({PlaceReady{.place = PlaceId{1}, .num_slots = 1}});

  submit({kA});

  EXPECT_FALSE(state().wish);
  const auto events = log_->read(1, 100);
  const auto skipped = std::ranges::find_if(
      *events, [](const Event& event) { return std::holds_alternative<RoundSkipped>(event.body); });
  ASSERT_NE(skipped, events->end());
  EXPECT_EQ(std::get<RoundSkipped>(skipped->body).why, "no plan within the effort");
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

TEST_F(ControllerTest, AsksAgainWhenNobodyAnswersAndGivesUpAStartThatNeverComes) {
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

TEST_F(ControllerTest, AsksAgainForAStopAndThenForOneAtOnce) {
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
