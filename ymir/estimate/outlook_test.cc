#include "ymir/estimate/outlook.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ymir/estimate/test_world.h"

namespace ymir {
namespace {

using test::TestWorld;
using test::Truth;

// Accuracies per half epoch (8 steps, or as many as `interval` says) as measured on MiniLM with
// LoRA: alone, and from a source.
struct Measured {
  const char* name;
  int labels;
  double target;
  std::vector<double> alone, with;
  std::int64_t interval = 8;
};
const Measured kNewsAfterMovies{"editorials after movie reviews",
                                2,
                                0.84,
                                {.65, .65, .65, .65, .78, .84},
                                {.82, .80, .86, .85, .84, .85}};
const Measured kNounsAfterGeneralNouns{"special nouns after all nouns",
                                       6,
                                       0.66,
                                       {.20, .20, .35, .39, .47, .50, .59, .63},
                                       {.50, .70, .71, .72, .75, .72}};
const Measured kDefinitionsAfterMovies{"definitions after movie reviews",
                                       6,
                                       0.84,
                                       {.51, .60, .67, .80, .72, .83, .87, .88},
                                       {.35, .50, .40, .43, .48, .60, .81, .79}};

// A task that is harder than its profile looks: alone it needs 70 steps to .80, as it does not seem
// after seven. From another noun task's adapter it needed 56.
const Measured kThingsAfterLiving{"things after living things",
                                  4,
                                  0.80,
                                  {.443, .603, .543, .58, .653, .697, .707, .737, .747, .827},
                                  {.563, .59, .66, .687, .743, .793, .74, .81},
                                  7};

// Lifted at once, then it stands still, while alone it would have gone on.
const Measured kMeasuresAfterNews{"measures after editorials",
                                  4,
                                  0.89,
                                  {.34, .47, .62, .70, .80, .84, .85, .86, .87, .87, .88, .89},
                                  {.453, .47, .487, .487, .493, .493, .497, .51},
                                  7};

// A snapshot in which job 1, profiled for one half epoch, runs from job 2 and has shown `shown`
// evaluations.
Snapshot merged_after(const Measured& m, std::size_t shown) {
  Snapshot now;
  JobView& job = now.jobs[JobId{1}];
  job.id = JobId{1};
  job.state = JobState::kRunning;
  job.spec.target = {"accuracy", m.target};
  job.facts = {.train_rows = 250,
               .validation_rows = 350,
               .num_labels = m.labels,
               .steps_per_epoch = 2 * m.interval,
               .total_steps = 20 * m.interval,
               .data_hash = "x",
               .backbone = "minilm"};
  Profile profile;
  profile.evaluations = {{.step = m.interval, .metrics = {{"accuracy", m.alone[0]}}}};
  job.profile = profile;
  job.own_checkpoint = Checkpoint{.step = m.interval};
  job.merged = true;
  job.run = RunId{1};
  Transfer transfer{.partner = JobId{2}, .run = RunId{1}};
  transfer.card.speedup = log_normal(0.1, 0.7);
  for (std::size_t i = 0; i < shown; ++i) {
    transfer.evaluations.push_back({.step = m.interval * static_cast<std::int64_t>(i + 1),
                                    .metrics = {{"accuracy", m.with[i]}}});
  }
  job.evaluations = transfer.evaluations;
  job.transfers = {transfer};
  now.runs[RunId{1}] = RunView{
      .run = RunId{1}, .what = {Mode::kTemporal, JobId{1}, JobId{2}, 1, 0.5}, .jobs = {JobId{1}}};
  return now;
}
TransferOutlook outlook_after(const Measured& m, std::size_t shown) {
  return outlooks(merged_after(m, shown), Knowledge()).at(0);
}

TEST(Outlook, SeesMeasuredHelpAtTheFirstEvaluation) {
  for (const Measured* m : {&kNewsAfterMovies, &kNounsAfterGeneralNouns}) {
    const TransferOutlook first = outlook_after(*m, 1);

    EXPECT_GT(first.helps, 0.5) << m->name;  // it might stand still from here on
    EXPECT_LT(first.restart_saves, 0) << m->name;
    EXPECT_GT(outlook_after(*m, 2).helps, 0.5) << m->name;
    EXPECT_DOUBLE_EQ(first.epochs, 0.5);
    EXPECT_EQ(first.baseline, "predicted");
    EXPECT_GT(first.observed, first.expected);
    EXPECT_FALSE(first.literal_rule_failed);
  }
}

TEST(Outlook, SeesMeasuredHarmBeforeTheFirstEpochIsOver) {
  const TransferOutlook first = outlook_after(kDefinitionsAfterMovies, 1);

  EXPECT_LT(first.helps, 0.1);
  EXPECT_GT(first.restart_saves, 0);
  EXPECT_LT(first.observed, first.expected);
}

TEST(Outlook, SeesASourceThatLiftsTheTargetAndThenHoldsItBack) {
  const TransferOutlook judged = outlook_after(kMeasuresAfterNews, 4);

  EXPECT_DOUBLE_EQ(judged.epochs, 2);
  EXPECT_LT(judged.observed, judged.expected - judged.deviation);
  EXPECT_LT(judged.helps, 0.35);
  EXPECT_GT(judged.restart_saves, 0);
}

// The profile promises too much, so the merged run looks worse than alone from the second epoch on
// although it is ahead of what alone really gave. What it shows is taken as news of the task as
// well: it goes on. (Measured alone: .58 at the step at which this run shows .687.)
TEST(Outlook, KeepsARunThatIsBehindAPredictionWhichPromisedTooMuch) {
  const TransferOutlook judged = outlook_after(kThingsAfterLiving, 4);

  EXPECT_GT(judged.observed, kThingsAfterLiving.alone[3]);  // helped, by the measured curve
  EXPECT_LT(judged.observed, judged.expected);              // not by the predicted one,
  EXPECT_LT(judged.expected - judged.observed, 2 * judged.deviation);  // which is that uncertain
  EXPECT_GT(judged.helps, 0.5);
  EXPECT_LT(judged.restart_saves, 0);
}

TEST(Outlook, BeforeAnyEvaluationIsTheCardsBelief) {
  const TransferOutlook none = outlook_after(kNewsAfterMovies, 0);

  EXPECT_EQ(none.epochs, 0);
  EXPECT_GT(none.helps, 0.2);
  EXPECT_LT(none.helps, 0.7);
}

TEST(Outlook, TheLiteralRuleComparesWithTheEvaluationBeforeTheFirstStep) {
  Measured still = kDefinitionsAfterMovies;
  still.with = {.30, .31, .33, .32};
  const auto add_start = [&still](double accuracy) {
    Snapshot now = merged_after(still, 4);
    auto& evaluations = now.jobs.at(JobId{1}).transfers[0].evaluations;
    evaluations.insert(evaluations.begin(), {.step = 0, .metrics = {{"accuracy", accuracy}}});
    return outlooks(now, Knowledge()).at(0).literal_rule_failed;
  };

  EXPECT_TRUE(outlook_after(still, 4).literal_rule_failed);  // the profile had .51
  EXPECT_FALSE(add_start(0.31));                             // .33 is better
  EXPECT_TRUE(add_start(0.34));                              // none is better
}

// The source lifted the first evaluation at once, and the next ones were no better. Against what
// the job had before, all of them are.
TEST(Outlook, TheLiteralRuleDoesNotPunishAHeadStart) {
  Measured lifted = kNounsAfterGeneralNouns;
  lifted.with = {.70, .68, .69, .70};

  const TransferOutlook judged = outlook_after(lifted, 4);

  EXPECT_FALSE(judged.literal_rule_failed);
  EXPECT_GT(judged.helps, 0.9);
}

// A finished source, a target profiled and probed, and its transfer under way.
struct Pair {
  TestWorld world;
  JobId source{}, target{};
  RunId run{};
  explicit Pair(double steps = 60) : world(2) {
    source = world.submit({.steps = 30});
    world.profile(source);
    const RunId first = world.begin({.mode = Mode::kNormal, .job = source, .gpus = 1}, {});
    while (!world.advance(first, source, 1)) {
    }
    target = world.submit({.steps = steps});
    world.profile(target);
    Card card;
    card.speedup = log_normal(0.2, 0.6);
    card.similarity = 0.2;
    run = world.begin({Mode::kTemporal, target, source, 1, 0.5}, card);
  }
  const TransferSettled& settled() const { return *world.job(target).transfers.at(0).settled; }
};

TEST(Settle, AHelpfulTransferGetsItsSpeedUpWhenTheTargetIsMet) {
  Pair pair;

  while (!pair.world.advance(pair.run, pair.target, 3)) {
  }

  const TransferSettled& s = pair.settled();
  EXPECT_TRUE(s.kept);
  EXPECT_FALSE(s.censored);
  EXPECT_GT(s.actual, 1.3);
  EXPECT_LT(s.actual, 6);
  EXPECT_EQ(s.baseline, "predicted");
  EXPECT_EQ(s.similarity, 0.2);
  EXPECT_EQ(s.extra.count(), 0);
  EXPECT_TRUE(pair.world.estimator().settle(pair.world.now()).empty());
}

TEST(Settle, APredictedBaselineLeavesAnIntervalThatHoldsTheMeasuredGain) {
  const Measured& m = kThingsAfterLiving;
  Snapshot now = merged_after(m, m.with.size());
  JobView& job = now.jobs.at(JobId{1});
  job.state = JobState::kSucceeded;
  job.result = JobFinished{.job = JobId{1},
                           .outcome = Outcome::kSucceeded,
                           .reason = "target",
                           .target_reached = true,
                           .step = 56};
  now.runs.clear();

  const TransferSettled settled = settlements(now, Knowledge()).at(0);

  const double measured = 67.6 / 55;  // crossings of .80: alone, and with
  EXPECT_EQ(settled.baseline, "predicted");
  EXPECT_LT(settled.range.p10, measured);
  EXPECT_GT(settled.range.p90, measured);
  EXPECT_EQ(settled.range.p50, settled.actual);
}

TEST(Settle, ASplitOneIsAnUpperBoundBelowOneAndCostsTime) {
  Pair pair;
  for (int i = 0; i < 4; ++i) pair.world.advance(pair.run, pair.target, 0.3);

  pair.world.split(pair.run, pair.target, pair.source, true);

  const TransferSettled& s = pair.settled();
  EXPECT_FALSE(s.kept);
  EXPECT_TRUE(s.censored);
  EXPECT_LT(s.actual, 0.9);
  EXPECT_GT(s.extra.count(), 32 * TestWorld::kStep * 0.9);
}

TEST(Settle, AJobThatRanOnTheSameDataAloneIsAMeasuredBaseline) {
  Pair pair;
  Snapshot now = pair.world.now();
  const JobView& alone = now.jobs.at(pair.source);
  JobView& target = now.jobs.at(pair.target);
  target.facts.data_hash = alone.facts.data_hash;
  const SoloBelief belief = Knowledge().alone(target);

  const Baseline measured = baseline_of(now, target, belief);
  target.spec.target.value -= 0.05;
  const Baseline other_target = baseline_of(now, target, belief);

  EXPECT_EQ(measured.name, "measured");
  EXPECT_NEAR(measured.steps.p50, static_cast<double>(alone.result->step), 8);
  EXPECT_EQ(other_target.name, "predicted");
}

TEST(Settle, ACancelledJobSaysNothing) {
  Pair pair;
  pair.world.advance(pair.run, pair.target, 1);

  pair.world.tell(JobFinished{
      .job = pair.target, .outcome = Outcome::kCancelled, .reason = "cancelled", .run = pair.run});

  EXPECT_TRUE(pair.world.estimator().settle(pair.world.now()).empty());
}

}  // namespace
}  // namespace ymir
