#include "ymir/core/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ymir/core/codec.h"
#include "ymir/core/random_values.h"

namespace ymir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr JobId kA{1}, kB{2};

// A state that is told what happens, a second apart.
class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() {
    tell(DaemonStarted{.era = 1});
    tell(PlaceReady{.place = PlaceId{1}, .num_slots = 2});
  }
  void tell(EventBody body) {
    state.apply({.seq = state.seq + 1,
                 .at = from_seconds(static_cast<double>(state.seq + 1)),
                 .body = std::move(body)});
  }
  void add(JobId job) {
    tell(JobSubmitted{.job = job});
    tell(DataCheckStarted{job});
    tell(DataChecked{job, {.total_steps = 90}});
  }
  RunId run(Assignment what, std::vector<int> slots, std::int64_t from = 0, bool profile = false) {
    const RunId id = state.new_run();
    RunRequested asked{.run = id,
                       .what = what,
                       .jobs = {what.job},
                       .profile = profile,
                       .place = PlaceId{1},
                       .slots = std::move(slots),
                       .from_steps = {from}};
    if (what.mode == Mode::kSpatial) {
      asked.jobs.push_back(*what.partner);
      asked.from_steps.push_back(from);
    }
    tell(asked);
    tell(RunStarted{.run = id});
    return id;
  }
  void plan(std::vector<Assignment> lines) {
    PlanAdopted adopted{.round = state.round + 1, .based_on = state.seq};
    for (const Assignment& line : lines) adopted.plan.assignments.push_back({.what = line});
    tell(adopted);
  }
  const JobView& job(JobId id) const { return state.jobs.at(id); }
  std::string refusal(const EventBody& body) const {
    const auto allowed = state.allows(body);
    return allowed ? "" : allowed.error().message;
  }

  Snapshot state{};
};

Assignment normal(JobId job) { return {.job = job, .gpus = 1}; }
Assignment temporal(JobId job, JobId source) {
  return {.mode = Mode::kTemporal, .job = job, .partner = source, .gpus = 1, .strength = 0.5};
}
const Assignment kPair{.mode = Mode::kSpatial, .job = kA, .partner = kB, .gpus = 1};

TEST_F(SnapshotTest, CountsSlotsAsTakenFromTheRequestToTheEndOfTheRun) {
  add(kA);

  const int before = state.free_gpus();
  const RunId id = run(normal(kA), {1});
  const int meanwhile = state.free_gpus();
  tell(RunStopped{.run = id});

  EXPECT_EQ(before, 2);
  EXPECT_EQ(meanwhile, 1);
  EXPECT_EQ(state.free_gpus(), 2);
}

TEST_F(SnapshotTest, GivesEachRunANewId) {
  add(kA);

  const RunId first = run(normal(kA), {0});
  tell(RunStopped{.run = first});
  const RunId second = run(normal(kA), {0});

  EXPECT_EQ(to_string(first), "r1.1");
  EXPECT_EQ(to_string(second), "r1.2");
}

TEST_F(SnapshotTest, RefusesASlotThatIsTakenOrDoesNotExist) {
  add(kA);
  add(kB);
  run(normal(kA), {0});
  RunRequested asked{.run = state.new_run(),
                     .what = normal(kB),
                     .jobs = {kB},
                     .place = PlaceId{1},
                     .slots = {0},
                     .from_steps = {0}};

  const std::string taken = refusal(asked);
  asked.slots = {7};
  const std::string missing = refusal(asked);

  EXPECT_EQ(taken, "slot 0 of p1 is taken");
  EXPECT_EQ(missing, "p1 has no slot 7");
}

TEST_F(SnapshotTest, EndsAJobOnce) {
  add(kA);
  const RunId id = run(normal(kA), {0});
  tell(JobFinished{.job = kA, .run = id});

  for (const EventBody& body : {EventBody(JobFinished{.job = kA}), EventBody(JobHeld{kA}),
                                EventBody(CheckpointCommitted{.job = kA, .run = id, .step = 1}),
                                EventBody(EpochEvaluated{.job = kA, .run = id})})
    EXPECT_THAT(refusal(body), HasSubstr("j1 has already ended"));
}

TEST_F(SnapshotTest, TakesNoReportOfARunThatIsOver) {
  add(kA);
  const RunId id = run(normal(kA), {0});
  tell(RunLost{.run = id});

  for (const EventBody& body : {EventBody(RunStarted{.run = id}), EventBody(RunStopped{.run = id}),
                                EventBody(RunLost{.run = id}),
                                EventBody(CheckpointCommitted{.job = kA, .run = id, .step = 1})})
    EXPECT_THAT(refusal(body), HasSubstr("r1.1 is not under way"));
}

TEST_F(SnapshotTest, RaisesTheVersionWithWhatARoundReadsAndNotWithProgress) {
  add(kA);
  const RunId id = run(normal(kA), {0});
  const std::uint64_t running = job(kA).version;

  tell(EpochEvaluated{.job = kA, .run = id, .evaluation = {.step = 3}});
  tell(StepTimed{.job = kA, .run = id});
  const std::uint64_t progressed = job(kA).version;
  tell(JobHeld{kA});

  EXPECT_EQ(progressed, running);
  EXPECT_GT(job(kA).version, progressed);
}

TEST_F(SnapshotTest, TakesTheStepsOfAProfileForNoProgress) {
  add(kA);
  const RunId profile = run(normal(kA), {0}, 0, true);
  tell(CheckpointCommitted{.job = kA, .run = profile, .step = 9});
  tell(ProfileFinished{.job = kA, .run = profile});
  tell(RunStopped{.run = profile});

  const bool after_profile = job(kA).has_progress();
  const RunId id = run(normal(kA), {0}, 9);
  tell(CheckpointCommitted{.job = kA, .run = id, .step = 20});

  EXPECT_FALSE(after_profile);
  EXPECT_TRUE(job(kA).has_progress());
  EXPECT_EQ(job(kA).steps_done, 20);
}

TEST_F(SnapshotTest, KeepsTheCheckpointFromBeforeTheMerge) {
  add(kA);
  add(kB);
  tell(JobFinished{.job = kA, .outcome = Outcome::kSucceeded, .run = run(normal(kA), {0})});
  tell(RunStopped{.run = RunId{std::uint64_t{1} << 48 | 1}});
  const RunId profile = run(normal(kB), {0}, 0, true);
  tell(CheckpointCommitted{.job = kB, .run = profile, .step = 9});
  tell(ProfileFinished{.job = kB, .run = profile});
  tell(RunStopped{.run = profile});

  const RunId merged = run(temporal(kB, kA), {0});
  tell(CheckpointCommitted{.job = kB, .run = merged, .step = 30});

  EXPECT_EQ(job(kB).checkpoint->step, 30);
  EXPECT_EQ(job(kB).own_checkpoint->step, 9);
  ASSERT_NE(job(kB).merge(), nullptr);
  EXPECT_EQ(job(kB).merge()->partner, kA);
}

TEST_F(SnapshotTest, CutsWhatWasMeasuredBeyondTheCheckpointWhenARunStartsAgain) {
  add(kA);
  const RunId first = run(normal(kA), {0});
  tell(EpochEvaluated{
      .job = kA, .run = first, .evaluation = {.step = 10}, .losses = {{5, 1.0}, {10, 0.9}}});
  tell(CheckpointCommitted{.job = kA, .run = first, .step = 10});
  tell(EpochEvaluated{.job = kA, .run = first, .evaluation = {.step = 20}, .losses = {{20, 0.8}}});
  tell(RunLost{.run = first});

  run(normal(kA), {0}, 10);

  ASSERT_EQ(job(kA).evaluations.size(), 1u);
  EXPECT_EQ(job(kA).losses.size(), 2u);
  EXPECT_EQ(job(kA).losses.back().step, 10);
}

TEST_F(SnapshotTest, ChargesEachOfAPairHalfAndOnlyUntilItsEnd) {
  add(kA);
  add(kB);
  const RunId id = run(kPair, {0});
  const Time started = *state.runs.at(id).started;

  tell(JobFinished{.job = kA, .run = id});
  const Time a_ended = state.now;
  tell(RunStopped{.run = id});

  EXPECT_EQ(job(kA).busy, (a_ended - started) / 2);
  EXPECT_EQ(job(kB).busy, (state.now - started) / 2);
  EXPECT_EQ(job(kB).state, JobState::kPreempted);
}

TEST_F(SnapshotTest, MarksRunsThatTheNewPlanDoesNotWant) {
  add(kA);
  add(kB);
  plan({normal(kA)});
  const RunId id = run(normal(kA), {0});

  plan({normal(kA), normal(kB)});
  const bool kept = !state.runs.at(id).stopping;
  plan({normal(kB)});

  EXPECT_TRUE(kept);
  EXPECT_TRUE(state.runs.at(id).stopping);
  EXPECT_EQ(state.runs.at(id).stop_why, "round");
}

TEST_F(SnapshotTest, WantsTheSourceFirstAndTheTargetAfterIt) {
  add(kA);
  add(kB);
  plan({temporal(kB, kA)});

  const auto first = state.due();
  const RunId id = run(normal(kA), {0});
  tell(JobFinished{.job = kA, .outcome = Outcome::kSucceeded, .run = id});
  const auto then = state.due();

  EXPECT_THAT(first, ElementsAre(normal(kA)));
  EXPECT_THAT(then, ElementsAre(temporal(kB, kA)));
}

TEST_F(SnapshotTest, WantsAPairWithProgressToGoOnAlone) {
  add(kA);
  add(kB);
  plan({normal(kA)});
  const RunId id = run(normal(kA), {0});
  plan({kPair});
  const auto before = state.due();

  tell(CheckpointCommitted{.job = kA, .run = id, .step = 4});

  EXPECT_THAT(before, ElementsAre(kPair));
  EXPECT_THAT(state.due(), ElementsAre(normal(kA), normal(kB)));
}

TEST_F(SnapshotTest, TakesAPairApartThatCannotStart) {
  add(kA);
  add(kB);
  plan({kPair});
  for (int i = 0; i < 3; ++i) {
    const RunId id = state.new_run();
    tell(RunRequested{.run = id,
                      .what = kPair,
                      .jobs = {kA, kB},
                      .place = PlaceId{1},
                      .slots = {0},
                      .from_steps = {0, 0}});
    tell(RunLost{.run = id, .why = "start_failed"});
  }

  EXPECT_TRUE(job(kA).barred.contains(kB));
  EXPECT_THAT(state.due(), ElementsAre(normal(kA), normal(kB)));
  EXPECT_EQ(job(kA).faults, 0);
}

TEST_F(SnapshotTest, WantsNothingOfHeldAndEndedJobs) {
  add(kA);
  add(kB);
  plan({normal(kA), normal(kB)});

  tell(JobHeld{kA});
  tell(JobFinished{.job = kB, .outcome = Outcome::kCancelled});

  EXPECT_THAT(state.due(), IsEmpty());
}

TEST_F(SnapshotTest, RefusesAPlanThatNamesAJobTwice) {
  add(kA);
  add(kB);
  PlanAdopted adopted{.round = 1};
  adopted.plan.assignments = {{.what = normal(kA)}, {.what = temporal(kB, kA)}};

  EXPECT_EQ(refusal(adopted), "plan names twice: j1");
}

TEST_F(SnapshotTest, DiesRatherThanApplyWhatCannotHaveHappened) {
  EXPECT_DEATH(tell(RunStarted{.run = RunId{5}}), "r0.5 is not under way");
  EXPECT_DEATH(state.apply({.seq = 99, .body = JobSubmitted{kA}}), "event 99 after event 2");
}

// Random events, as an adversary would send them: what the gate lets through keeps every rule.
TEST(Snapshot, KeepsItsRulesWhateverIsReported) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    RandomValues values(seed);
    Rng& rng = values.rng();
    Snapshot state;
    std::map<JobId, std::pair<int, std::uint64_t>> seen;  // rank and version
    for (int i = 0; i < 60; ++i) {
      std::vector<EventBody> bodies;
      values.each(bodies);
      EventBody& body = bodies[rng.below(bodies.size())];
      // Small ids, so that events meet.
      std::visit(
          [&](auto& e) {
            if constexpr (requires { e.job; }) e.job = JobId{1 + rng.below(3)};
            if constexpr (requires { e.place; }) e.place = PlaceId{1 + rng.below(2)};
            if constexpr (requires { e.num_slots; }) e.num_slots = 2;
            if constexpr (requires { e.era; }) e.era = 1;
            if constexpr (requires { e.run; })
              if (!state.runs.empty() && rng.chance(0.8)) e.run = state.runs.begin()->first;
          },
          body);
      if (auto* asked = std::get_if<RunRequested>(&body)) {
        const JobId job{1 + rng.below(3)};
        *asked = {.run = state.new_run(),
                  .what = {.job = job, .gpus = 1},
                  .jobs = {job},
                  .profile = rng.chance(0.3),
                  .place = PlaceId{1 + rng.below(2)},
                  .slots = {static_cast<int>(rng.below(2))},
                  .from_steps = {0}};
      }
      if (!state.allows(body)) continue;
      state.apply({.seq = state.seq + 1, .at = from_seconds(i), .body = body});
      RC_ASSERT(state.free_gpus() >= 0);
      for (const auto& [id, job] : state.jobs) {
        auto& [rank, version] = seen[id];
        RC_ASSERT(rank_of(job) >= rank);
        RC_ASSERT(job.version >= version);
        RC_ASSERT(!job.run || state.runs.contains(job.run));
        rank = rank_of(job);
        version = job.version;
      }
    }
  }));
}

}  // namespace
}  // namespace ymir
