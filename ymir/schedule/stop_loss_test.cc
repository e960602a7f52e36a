#include "ymir/schedule/stop_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/schedule/test_round.h"

namespace ymir {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr JobId kA{1}, kB{2};

// B trains after A in run 2 (temporal), or A and B together (spatial).
TestRound merged(Mode mode) {
  TestRound test;
  test.job(1);
  test.job(2);
  const Assignment what =
      mode == Mode::kTemporal ? Assignment{mode, kB, kA, 1, 0.5} : Assignment{mode, kA, kB, 1, 1};
  const std::vector<JobId> jobs = mode == Mode::kTemporal ? std::vector{kB} : std::vector{kA, kB};
  const RunId run = test.runs(what, jobs).run;
  for (const JobId id : jobs)
    test.cluster.jobs.at(id).transfers.push_back(
        {.partner = id == kA ? kB : kA, .mode = mode, .run = run});
  return test;
}

TransferOutlook outlook(const TestRound& test, JobId job, double helps, double epochs) {
  return {.run = test.cluster.runs.begin()->first,
          .job = job,
          .helps = helps,
          .epochs = epochs,
          .baseline = "predicted",
          .observed = 0.6,
          .expected = 0.7};
}

TEST(StopLoss, SaysNothingBeforeTwoEpochsOfAnUncertainPair) {
  const TestRound test = merged(Mode::kTemporal);

  const auto verdicts = judge(test.cluster, {outlook(test, kB, 0.3, 1.9)}, {});

  EXPECT_THAT(verdicts, IsEmpty());
}

TEST(StopLoss, SplitsAfterTwoEpochsThatWereWorseThanAlone) {
  const TestRound test = merged(Mode::kTemporal);

  const auto verdicts = judge(test.cluster, {outlook(test, kB, 0.3, 2)}, {});

  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].split);
  EXPECT_EQ(verdicts[0].job, kB);
  EXPECT_EQ(verdicts[0].partner, kA);
  EXPECT_THAT(verdicts[0].why, HasSubstr("worse than alone at epoch 2.00"));
}

TEST(StopLoss, SplitsAtOnceWhatIsClearlyWorse) {
  const TestRound test = merged(Mode::kTemporal);

  const auto verdicts = judge(test.cluster, {outlook(test, kB, 0.05, 1)}, {});

  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].split);
}

TEST(StopLoss, SplitsEarlyWhenItsOwnCheckpointIsExpectedToBeSooner) {
  TestRound test = merged(Mode::kTemporal);
  test.cluster.jobs.at(kB).own_checkpoint = Checkpoint{.step = 10, .path = "own"};
  TransferOutlook doubtful = outlook(test, kB, 0.3, 0.5);
  const auto unknown = judge(test.cluster, {doubtful}, {});

  doubtful.restart_saves = 4;
  const auto sooner = judge(test.cluster, {doubtful}, {});
  doubtful.helps = 0.6;
  const auto hopeful = judge(test.cluster, {doubtful}, {});

  EXPECT_THAT(unknown, IsEmpty());
  ASSERT_THAT(sooner, SizeIs(1));
  EXPECT_TRUE(sooner[0].split);
  EXPECT_TRUE(sooner[0].restart);
  EXPECT_THAT(hopeful, IsEmpty());
}

TEST(StopLoss, DoesNotJudgeBeforeTheFirstEvaluation) {
  const TestRound test = merged(Mode::kTemporal);

  const auto verdicts = judge(test.cluster, {outlook(test, kB, 0.0, 0)}, {});

  EXPECT_THAT(verdicts, IsEmpty());
}

TEST(StopLoss, FollowsThePapersRuleWhenTheMetricStandsStill) {
  const TestRound test = merged(Mode::kTemporal);
  TransferOutlook still = outlook(test, kB, 0.9, 2);
  still.literal_rule_failed = true;

  const auto verdicts = judge(test.cluster, {still}, {});

  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].split);
}

TEST(StopLoss, KeepsAHelpfulPairOnce) {
  TestRound test = merged(Mode::kTemporal);
  const std::vector<TransferOutlook> outlooks{outlook(test, kB, 0.9, 2)};

  const auto first = judge(test.cluster, outlooks, {});
  test.cluster.jobs.at(kB).transfers.back().verdict = Transfer::Verdict::kKept;
  const auto second = judge(test.cluster, outlooks, {});

  ASSERT_THAT(first, SizeIs(1));
  EXPECT_FALSE(first[0].split);
  EXPECT_THAT(second, IsEmpty());
}

// Two epochs are lost by going back; going on might lose more.
TEST(StopLoss, GoesBackAfterTwoEpochsWhatIsLikelyToEndTooLate) {
  TestRound test = merged(Mode::kTemporal);
  test.cluster.jobs.at(kB).own_checkpoint = Checkpoint{.step = 10, .path = "own"};
  TransferOutlook ahead = outlook(test, kB, 0.66, 2.15);
  ahead.restart_saves = -7;  // by the mean; but its own curve may be much steeper
  ahead.late = 0.34;
  const auto early = [&] {
    TransferOutlook first = ahead;
    first.epochs = 0.5;
    return judge(test.cluster, {first}, {});
  }();

  const auto verdicts = judge(test.cluster, {ahead}, {});

  EXPECT_THAT(early, IsEmpty());
  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].split);
  EXPECT_TRUE(verdicts[0].restart);
  EXPECT_THAT(verdicts[0].why, HasSubstr("likely to end too late at epoch 2.15"));
}

TestRound kept(Mode mode) {
  TestRound test = merged(mode);
  for (const JobId id : {kA, kB}) {
    JobView& job = test.cluster.jobs.at(id);
    job.own_checkpoint = Checkpoint{.step = 10, .path = "own"};
    if (!job.transfers.empty()) job.transfers.back().verdict = Transfer::Verdict::kKept;
  }
  return test;
}

TEST(StopLoss, TakesAKeptTargetBackWhenItsOwnCheckpointHasBecomeSooner) {
  const TestRound test = kept(Mode::kTemporal);
  TransferOutlook slow = outlook(test, kB, 0.3, 3.5);
  slow.restart_saves = 12;

  const auto verdicts = judge(test.cluster, {slow}, {});

  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].split);
  EXPECT_TRUE(verdicts[0].restart);
}

TEST(StopLoss, DoesNotThrowAwayWhatAKeptTargetHasWhenGoingOnIsSooner) {
  const TestRound test = kept(Mode::kTemporal);
  TransferOutlook late = outlook(test, kB, 0.45, 3.5);
  late.restart_saves = -3;
  late.late = 0.9;

  EXPECT_THAT(judge(test.cluster, {late}, {}), IsEmpty());
}

TEST(StopLoss, GoesBackWithinWhatALongJobMayLose) {
  const TestRound test = kept(Mode::kTemporal);
  TransferOutlook late = outlook(test, kB, 0.6, 3.5);
  late.late = 0.5;
  late.allowed_epochs = 5;

  const auto verdicts = judge(test.cluster, {late}, {});

  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].restart);
}

TEST(StopLoss, PartsAKeptPairAsSoonAsOneSideIsWorseOff) {
  const TestRound test = kept(Mode::kSpatial);

  const auto verdicts =
      judge(test.cluster, {outlook(test, kA, 0.9, 6), outlook(test, kB, 0.4, 6)}, {});

  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].split);
  EXPECT_FALSE(verdicts[0].restart);
}

TEST(StopLoss, SplitsASpatialPairWhenEitherSideFails) {
  const TestRound test = merged(Mode::kSpatial);

  const auto verdicts =
      judge(test.cluster, {outlook(test, kA, 0.9, 2), outlook(test, kB, 0.2, 2)}, {});

  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_TRUE(verdicts[0].split);
  EXPECT_EQ(verdicts[0].job, kB);
  EXPECT_EQ(verdicts[0].partner, kA);
}

TEST(StopLoss, JudgesNoRunThatIsAlreadyStopping) {
  TestRound test = merged(Mode::kTemporal);
  test.cluster.runs.begin()->second.stopping = true;

  const auto verdicts = judge(test.cluster, {outlook(test, kB, 0.0, 2)}, {});

  EXPECT_THAT(verdicts, IsEmpty());
}

// Its own checkpoint had 0.5; alone it would have 0.7 by now.
bool restarts_with(double observed) {
  TestRound test = merged(Mode::kTemporal);
  JobView& job = test.cluster.jobs.at(kB);
  job.own_checkpoint = Checkpoint{.step = 10, .path = "own"};
  job.profile = Profile{.evaluations = {{.step = 10, .metrics = {{"accuracy", 0.5}}}}};
  TransferOutlook seen = outlook(test, kB, 0.05, 2);
  seen.observed = observed;
  return judge(test.cluster, {seen}, {}).at(0).restart;
}

TEST(StopLoss, GoesOnFromWhereItIsWhenMostOfTheSoloGainIsThere) {
  EXPECT_FALSE(restarts_with(0.65));
}

TEST(StopLoss, GoesBackToItsOwnCheckpointWhenTheSourceHeldItBack) {
  EXPECT_TRUE(restarts_with(0.55));
  EXPECT_TRUE(restarts_with(0.45));
}

TEST(StopLossOptions, NamesTheFieldThatIsWrong) {
  const auto result = StopLossOptions{.keep_above = 0.1, .early_below = 0.2}.validate();

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("early_below"));
}

}  // namespace
}  // namespace ymir
