#include "ymir/sim/sim_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/core/codec.h"
#include "ymir/sim/faulty_world.h"
#include "ymir/sim/scenario.h"

namespace ymir {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr JobId kA{1}, kB{2};
constexpr RunId kRun{7};

JobModel two_jobs() {
  JobModel model;
  model.add(kA, {.steps = 20, .steps_per_epoch = 10, .max_steps = 80});
  model.add(kB, {.steps = 20, .steps_per_epoch = 10, .max_steps = 80});
  return model;
}

StartRun start_of(JobId job, int gpus = 1) {
  StartRun order{.run = kRun, .place = PlaceId{1}};
  for (int slot = 0; slot < gpus; ++slot) order.slots.push_back(slot);
  order.tasks.push_back({.job = job, .folder = "/" + to_string(job)});
  order.tasks.back().spec.target = {"accuracy", 0.9};
  return order;
}

// Kinds of all that happens until nothing does any more, with the seconds: "RunStarted@2".
std::vector<std::string> happens(World& world, double until = 1000) {
  std::vector<std::string> seen;
  while (world.now() < from_seconds(until))
    for (const Event& event : world.wait(from_seconds(until)))
      if (!std::holds_alternative<StepTimed>(event.body))
        seen.push_back(std::string(kind_of(event.body)) + "@" +
                       std::to_string(static_cast<int>(to_seconds(event.at))));
  return seen;
}

TEST(JobModel, MeetsTheTargetAtItsSteps) {
  const JobModel model = two_jobs();

  EXPECT_DOUBLE_EQ(model.metric(kA, 0), 0.5);
  EXPECT_DOUBLE_EQ(model.metric(kA, 1), 0.9);
  for (const double progress : {-0.2, 0.1, 0.5, 1.0, 1.7})
    EXPECT_NEAR(model.progress_at(kA, model.metric(kA, progress)), progress, 1e-9);
}

TEST(JobModel, GivesATargetItsHeadStart) {
  JobModel model = two_jobs();
  model.set_temporal(kA, kB, 1.0);

  EXPECT_DOUBLE_EQ(model.head_start(kA, kB), 0.5);
  EXPECT_DOUBLE_EQ(model.head_start(kB, kA), 0);
}

TEST(JobModel, IsFasterOnMoreGpus) {
  const JobModel model = two_jobs();

  EXPECT_DOUBLE_EQ(model.step_time(kA, 2).count(), 1 / 1.9);
  EXPECT_LT(model.step_time(kA, 3), model.step_time(kA, 2));
  EXPECT_LT(model.step_time(kA, 4), model.step_time(kA, 3));
}

TEST(JobModel, ReadsMeasuredTimesFirstAndIsLinearInSpeedBetweenThem) {
  JobModel model;
  model.add(kA, {.step_time = Seconds(100),
                 .table = {.rows = {{1, 1, 8.0}, {2, 1, 4.0}, {2, 2, 5.0}, {4, 1, 2.0}}}});

  EXPECT_DOUBLE_EQ(model.step_time(kA, 2).count(), 4);
  EXPECT_DOUBLE_EQ(model.step_time(kA, 2, 2).count(), 5) << "on two nodes";
  EXPECT_DOUBLE_EQ(model.step_time(kA, 4, 3).count(), 2) << "no other node count was measured";
  EXPECT_DOUBLE_EQ(model.step_time(kA, 3).count(), 1 / 0.375) << "speeds 0.25 and 0.5";
  EXPECT_DOUBLE_EQ(model.step_time(kA, 8).count(), 2) << "beyond the last it stays";
}

TEST(JobModel, TakesGainsOfFamiliesWhereNoneIsSetByJob) {
  JobModel model;
  model.add(kA, {.family = "x"});
  model.add(kB, {.family = "y"});
  model.set_family_temporal("x", "y", 0.5);
  model.set_family_spatial("y", "x", {.gain_first = 0.1, .gain_second = 0.2, .joint = 1.5});

  EXPECT_DOUBLE_EQ(model.temporal_gain(kA, kB), 0.5);
  EXPECT_DOUBLE_EQ(model.temporal_gain(kB, kA), 0);
  EXPECT_DOUBLE_EQ(model.spatial(kA, kB).gain_first, 0.2);
  model.set_temporal(kA, kB, 2);
  EXPECT_DOUBLE_EQ(model.temporal_gain(kA, kB), 2);
}

TEST(SimWorld, JoinsItsNodesToOnePlaceWhereRunsMaySpanThem) {
  JobModel model;
  model.add(kA,
            {.steps = 10, .table = {.rows = {{2, 1, 1.0}, {2, 2, 3.0}}}, .start_time = Seconds(7)});
  SimWorld world({.nodes = {2, 2}, .one_place = true}, std::move(model));
  StartRun order = start_of(kA);
  order.slots = {1, 2};
  ASSERT_TRUE(world.request(order));

  EXPECT_THAT(happens(world),
              ElementsAre("PlaceReady@0", "RunStarted@7", "EpochEvaluated@37",
                          "CheckpointCommitted@37", "JobFinished@37", "RunStopped@37"))
      << "slots 1 and 2 lie on two nodes, and the job has its own start";
}

TEST(SimWorld, TellsARunFromItsStartToItsEnd) {
  SimWorld world({.nodes = {1}}, two_jobs());
  ASSERT_TRUE(world.request(start_of(kA)));

  EXPECT_THAT(happens(world),
              ElementsAre("PlaceReady@0", "RunStarted@2", "EpochEvaluated@12", "EpochEvaluated@22",
                          "CheckpointCommitted@22", "JobFinished@22", "RunStopped@22"));
}

TEST(SimWorld, StartsARunOnceHoweverOftenItIsAsked) {
  SimWorld world({.nodes = {1}}, two_jobs());
  ASSERT_TRUE(world.request(start_of(kA)));
  ASSERT_TRUE(world.request(start_of(kA)));

  EXPECT_THAT(happens(world), SizeIs(7));
}

TEST(SimWorld, StopsAtTheNextStepBoundaryWithACheckpoint) {
  SimWorld world({.nodes = {1}}, two_jobs());
  ASSERT_TRUE(world.request(start_of(kA)));
  while (world.now() < from_seconds(5.4)) world.wait(from_seconds(5.4));

  ASSERT_TRUE(world.request(StopRun{kRun}));

  EXPECT_THAT(happens(world), ElementsAre("CheckpointCommitted@6", "RunStopped@6"));
  EXPECT_EQ(world.steps_lost(), 0);
  EXPECT_DOUBLE_EQ(world.progress_of(kA), 0.2);
}

TEST(SimWorld, LosesWhatWasNotSavedWhenAWorkerDies) {
  SimWorld world({.nodes = {1}}, two_jobs());
  ASSERT_TRUE(world.request(start_of(kA)));
  world.kill_worker_at(from_seconds(9), kA);

  EXPECT_THAT(happens(world), ElementsAre("PlaceReady@0", "RunStarted@2", "RunLost@9"));
  EXPECT_EQ(world.steps_lost(kA), 7);
}

TEST(SimWorld, AnswersAStopOfARunThatItNeverSaw) {
  SimWorld world({.nodes = {1}}, two_jobs());
  ASSERT_TRUE(world.request(StopRun{kRun}));
  ASSERT_TRUE(world.request(start_of(kA)));

  EXPECT_THAT(happens(world), ElementsAre("PlaceReady@0", "RunLost@0", "RunLost@0"));
}

TEST(SimWorld, RunsNothingOnANodeThatIsGone) {
  SimWorld world({.nodes = {1}}, two_jobs());
  world.lose_node_at(from_seconds(1), 0, from_seconds(50));
  ASSERT_TRUE(world.request(start_of(kA)));

  EXPECT_THAT(happens(world),
              ElementsAre("PlaceReady@0", "RunLost@1", "PlaceLost@1", "PlaceReady@50"));
}

TEST(SimWorld, GivesAProfileWhatAWorkerMeasures) {
  SimWorld world({.nodes = {1}}, two_jobs());
  StartRun order = start_of(kA);
  order.profile = true;
  order.profile_steps = 5;
  order.want_vector = true;
  ASSERT_TRUE(world.request(order));

  std::vector<Profile> profiles;
  while (world.now() < from_seconds(100))
    for (const Event& event : world.wait(from_seconds(100)))
      if (const auto* done = std::get_if<ProfileFinished>(&event.body))
        profiles.push_back(done->profile);

  ASSERT_THAT(profiles, SizeIs(1));
  EXPECT_THAT(profiles[0].losses, SizeIs(5));
  EXPECT_THAT(profiles[0].evaluations, SizeIs(3));
  EXPECT_THAT(profiles[0].vector.fisher, SizeIs(64));
  EXPECT_EQ(profiles[0].step_times.at(0).median, Seconds(1));
}

TEST(SimWorld, HandsOutOneInstantACallInAFixedOrder) {
  SimWorld world({.nodes = {1, 1}}, two_jobs());
  world.submit_at(from_seconds(10), kB, {});
  world.submit_at(from_seconds(10), kA, {});
  world.lose_node_at(from_seconds(10), 1, kNever);
  world.cancel_at(from_seconds(11), kA);
  world.wait(from_seconds(100));  // the nodes join

  const std::vector<Event> first = world.wait(from_seconds(100));
  const std::vector<Event> second = world.wait(from_seconds(100));

  ASSERT_THAT(first, SizeIs(3));
  EXPECT_TRUE(std::holds_alternative<PlaceLost>(first[0].body));
  EXPECT_EQ(std::get<JobSubmitted>(first[1].body).job, kA);
  EXPECT_EQ(std::get<JobSubmitted>(first[2].body).job, kB);
  EXPECT_THAT(second, SizeIs(1));
}

TEST(FaultyWorld, KeepsTheOrderOfARunsReports) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimWorld inner({.nodes = {1}}, two_jobs());
    FaultyWorld world(inner, {.seed = seed, .delay_report = 0.5, .longest_delay = Seconds(30)});
    ASSERT_TRUE(world.request(start_of(kA)));

    std::vector<std::string> kinds;
    while (world.now() < from_seconds(200))
      for (const Event& event : world.wait(from_seconds(200)))
        if (run_of(event.body) == kRun) kinds.emplace_back(kind_of(event.body));

    EXPECT_THAT(kinds, ElementsAre("RunStarted", "EpochEvaluated", "EpochEvaluated",
                                   "CheckpointCommitted", "JobFinished", "StepTimed", "RunStopped"))
        << "seed " << seed;
  }
}

TEST(FaultyWorld, LosesRequestsAndDoublesReports) {
  SimWorld inner({.nodes = {1}}, two_jobs());
  FaultyWorld world(inner, {.seed = 5, .lose_request = 0.9, .double_report = 0.9});

  for (int i = 0; i < 50; ++i) ASSERT_TRUE(world.request(start_of(kA)));

  EXPECT_GT(world.num_lost(), 20u);
  EXPECT_THAT(happens(world).size(), testing::Gt(8u));
  EXPECT_GT(world.num_doubled(), 2u);
}

std::string fault_of(const std::string& text) {
  const auto scenario = parse_scenario("s.scn", text);
  return scenario ? "" : scenario.error().message;
}

TEST(ScenarioParser, NamesFileAndLineOfEachFault) {
  EXPECT_THAT(fault_of(""), StartsWith("s.scn: no job"));
  EXPECT_THAT(fault_of("jub a\n"), StartsWith("s.scn:1: unknown statement jub"));
  EXPECT_THAT(fault_of("job a\njob a\n"), StartsWith("s.scn:2: job given twice: a"));
  EXPECT_THAT(fault_of("job a stops=3\n"), HasSubstr("unknown key stops"));
  EXPECT_THAT(fault_of("job a steps=x\n"), HasSubstr("s.scn:1: not a number"));
  EXPECT_THAT(fault_of("job a at=5\n"), HasSubstr("not a duration: 5"));
  EXPECT_THAT(fault_of("job a\ntruth a->c gain=1\n"), HasSubstr("s.scn:2: no job of that name"));
  EXPECT_THAT(fault_of("job a\nat 5s explode a\n"), HasSubstr("s.scn:2: at TIME"));
  EXPECT_THAT(fault_of("job a\nat 5s lose node3\n"), HasSubstr("no such node"));
  EXPECT_THAT(fault_of("job a\nexpect a\n"), HasSubstr("write JOB.FIELD"));
  EXPECT_THAT(fault_of("job a\nfaults lose=1.5\n"), HasSubstr("probability"));
  EXPECT_EQ(fault_of("# nothing but a job\njob a   # here\n"), "");
}

TEST(ScenarioCheck, FailsWhenTheWorldDoesNotWhatWasExpected) {
  const auto scenario = parse_scenario("s.scn",
                                       "cluster gpus=1\n"
                                       "job a steps=20\n"
                                       "expect a: Submitted Split\n"
                                       "expect a.steps == 21  a.finished before 1s  a.colour\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto run = run_scenario(*scenario);
  ASSERT_TRUE(run) << run.error().message;

  const auto faults = check_expectations(*scenario, *run, *run);

  ASSERT_THAT(faults, SizeIs(4));
  EXPECT_THAT(faults[0], StartsWith("s.scn:3: expected a: Submitted Split: Split is missing in:"));
  EXPECT_THAT(faults[1], HasSubstr("is 20"));
  EXPECT_THAT(check_invariants(*scenario, *run), IsEmpty());
}

TEST(ScenarioCheck, SeesWhatALogMayNotHold) {
  const auto scenario = parse_scenario("s.scn", "cluster gpus=1\njob a steps=20\n");
  const auto run = run_scenario(*scenario);
  ASSERT_TRUE(run);

  ScenarioRun backwards = *run, cut = *run, twice = *run;
  backwards.log.back().at = from_seconds(0);
  cut.log.resize(cut.log.size() / 2);
  const auto asked = std::ranges::find_if(twice.log, [](const Event& event) {
    return std::holds_alternative<RunRequested>(event.body);
  });
  twice.log.push_back(*asked);

  EXPECT_THAT(check_invariants(*scenario, backwards), Contains(HasSubstr("time falls")));
  EXPECT_THAT(check_invariants(*scenario, cut), Contains(HasSubstr("never ends")));
  EXPECT_THAT(check_invariants(*scenario, twice), Contains(HasSubstr("starts after its end")));
}

}  // namespace
}  // namespace ymir
