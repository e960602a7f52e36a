// sia, themis:auction and optimus:loss-fit: what each decides, and where it differs from its
// neighbour.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ymir/schedule/loss_fit.h"
#include "ymir/schedule/test_round.h"

namespace ymir {
namespace {

TEST(Sia, GivesTheGpusToTheJobsWhoseSpeedGrowsMost) {
  TestRound test({4});
  test.job(1, 4);
  test.job(2, 4);
  for (const int gpus : {1, 2, 4}) {
    test.alone(1, gpus, 1000.0 / gpus + 5);          // scales
    test.alone(2, gpus, 1000.0 / (1 + 0.1 * gpus));  // hardly
  }

  // 1 / sqrt(4) + lambda = 1.60 against 1 / sqrt(2) + 1 / sqrt(1.09) = 1.67.
  EXPECT_EQ(in_short(plan_by("sia", test)), "j1x4");
  EXPECT_EQ(in_short(plan_by("sia", test, {{"sia.lambda", "2"}})), "j1x2 j2x2");
}

TEST(Sia, SolvesTiesByTheFewestGpus) {
  TestRound test({4});
  test.job(1, 4);
  for (const int gpus : {1, 2, 4}) test.alone(1, gpus, 500);  // more GPUs bring nothing

  EXPECT_EQ(in_short(plan_by("sia", test)), "j1x1");
}

TEST(Sia, LeavesAJobItsSizeWhereAChangeWouldCostWhatItHasDone) {
  TestRound test({4});
  JobView& job = test.job(1, 4);
  test.alone_at_all_sizes(1, 1000);
  test.runs_alone(1, 1);
  test.cluster.jobs.at(JobId{1}).starts = 4;
  job.submitted = from_seconds(880);  // 120 s old: 120 - 3 x 30 of 150 is worth changing for

  const std::string stays = in_short(plan_by("sia", test));
  job.starts = 1;  // 120 of 150
  const std::string grows = in_short(plan_by("sia", test));

  EXPECT_EQ(stays, "j1x1");
  EXPECT_EQ(grows, "j1x4");
}

TEST(Sia, NamesAKeyThatItDoesNotKnow) {
  const auto made = make_policy("sia", {{"sia.lambada", "1"}});

  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, testing::HasSubstr("did you mean lambda"));
}

// Three jobs of one GPU on a node of one; j1 has waited longest.
TestRound three_on_one() {
  TestRound test({1});
  for (const std::uint64_t id : {1, 2, 3}) {
    test.job(id).submitted = from_seconds(100.0 * static_cast<double>(id));
    test.alone(id, 1, 505);
  }
  return test;
}

TEST(Auction, LendsTheGpuToTheJobThatIsWorstOff) {
  EXPECT_EQ(in_short(plan_by("themis:auction", three_on_one())), "j1x1");
}

TEST(Auction, KeepsALeaseUntilItEnds) {
  TestRound test = three_on_one();
  test.cluster.wish = PlanAdopted{.round = 1, .plan = plan_by("themis:auction", test)};
  test.runs_alone(1, 1);

  test.cluster.now = from_seconds(1599);
  const std::string within = in_short(plan_by("themis:auction", test));
  test.cluster.now = from_seconds(1600);
  for (Candidate& each : test.forecast.candidates)
    if (each.what.job == JobId{1}) each.members[0].finish_in = Interval::exactly(10);
  const std::string after = in_short(plan_by("themis:auction", test));

  EXPECT_EQ(within, "j1x1");
  EXPECT_EQ(after, "j2x1") << "j1 is nearly done, and no longer the worst";
}

TEST(Auction, TakesAPartOfWhatHurtsTheOthersAndGivesItBackAsLeftOver) {
  // Two equal bidders for four GPUs: each alone would get all four, so each pays for the other.
  TestRound test({4});
  for (const std::uint64_t id : {1, 2}) {
    test.job(id, 4).submitted = from_seconds(900);
    test.alone_at_all_sizes(id, 400);
  }

  const Plan plan = plan_by("themis:auction", test, {{"themis.f", "0"}});

  int gpus = 0;
  for (const PlannedAssignment& line : plan.assignments) gpus += line.what.gpus;
  EXPECT_EQ(plan.assignments.size(), 2u);
  EXPECT_EQ(gpus, 4) << "nothing is left idle";
}

TEST(Auction, OnlyTheWorstBidUnlessAllMay) {
  // j2 is far behind; with f = 1 nobody bids and the left-overs go by rho, one size at a time.
  TestRound test({4});
  test.job(1, 4).submitted = from_seconds(999);
  test.job(2, 4).submitted = from_seconds(100);
  test.alone_at_all_sizes(1, 400);
  test.alone_at_all_sizes(2, 400);

  const Plan one_bids = plan_by("themis:auction", test, {{"themis.f", "0.5"}});
  const Plan nobody_bids = plan_by("themis:auction", test, {{"themis.f", "1"}});

  EXPECT_EQ(in_short(one_bids), "j2x4") << "it bids alone and pays nothing";
  EXPECT_EQ(in_short(nobody_bids), "j1x2 j2x2");
}

TEST(LossFit, FindsTheCurveThatTheLossesLieOn) {
  const LossCurve truth{.a = 0.2, .b = 0.5, .c = 0.3};
  std::vector<double> losses;
  for (int epoch = 1; epoch <= 9; ++epoch) losses.push_back(truth.at(epoch));

  const auto curve = fit_loss(losses);

  ASSERT_TRUE(curve);
  for (const double epoch : {1.0, 9.0, 20.0, 60.0})
    EXPECT_NEAR(curve->at(epoch), truth.at(epoch), 0.02) << epoch;
  EXPECT_FALSE(fit_loss(std::vector<double>{2, 1}));
  EXPECT_FALSE(fit_loss(std::vector<double>{1, 2, 3, 4})) << "nothing falls";
}

TEST(LossFit, EndsWhereTenEpochsBringLittle) {
  const LossCurve curve{.a = 0.2, .b = 0.5, .c = 0.3};
  const double end = end_epoch(curve, 3);

  EXPECT_LE(curve.at(end - 10) - curve.at(end), 0.05);
  EXPECT_GT(curve.at(end - 11) - curve.at(end - 1), 0.05);
  EXPECT_EQ(end_epoch({.a = 1e-6, .b = 1e-3, .c = 0}, 95), 115) << "it falls for ever";
}

// j1's owner asks for little more, but its loss still falls steeply; j2 has nothing to fit.
TestRound one_still_falls() {
  TestRound test({4});
  JobView& falls = test.job(1, 2);
  test.job(2, 2);
  falls.facts.steps_per_epoch = 10;
  test.cluster.jobs.at(JobId{2}).facts.steps_per_epoch = 10;
  test.alone_at_all_sizes(1, 100);
  test.alone_at_all_sizes(2, 120);
  for (int epoch = 1; epoch <= 5; ++epoch)
    falls.evaluations.push_back({.step = 10 * epoch, .train_loss = 1 / (0.01 * epoch + 0.1)});
  return test;
}

TEST(OptimusLossFit, GivesTheNextGpuToTheJobWhoseLossStillFalls) {
  TestRound test = one_still_falls();
  test.cluster.places.at(PlaceId{1}).num_slots = 3;

  EXPECT_EQ(in_short(plan_by("optimus", test)), "j1x1 j2x2") << "j2 saves 60 s, j1 50 s";
  EXPECT_EQ(in_short(plan_by("optimus:loss-fit", test)), "j1x2 j2x1");
}

TEST(OptimusLossFit, IsOptimusWhereThereIsNothingToFit) {
  TestRound test = one_still_falls();
  test.cluster.places.at(PlaceId{1}).num_slots = 3;
  test.cluster.jobs.at(JobId{1}).evaluations.resize(2);

  EXPECT_EQ(in_short(plan_by("optimus:loss-fit", test)), in_short(plan_by("optimus", test)));
}

TEST(OptimusLossFit, TakesTheEpochsOfFinishedJobsOfTheBackbone) {
  TestRound test = one_still_falls();
  test.cluster.places.at(PlaceId{1}).num_slots = 3;
  test.job(3).state = JobState::kSucceeded;
  test.cluster.jobs.at(JobId{3}).facts.steps_per_epoch = 10;
  test.cluster.jobs.at(JobId{3}).result = JobFinished{.job = JobId{3}, .step = 60};

  EXPECT_EQ(in_short(plan_by("optimus:loss-fit", test)), "j1x1 j2x2")
      << "one epoch left of six for j1, six for j2";
}

TEST(Policies, ADaemonRefusesThoseThatOnlyASimulationCanGiveMeaning) {
  for (const std::string name : {"ymir:oracle", "ymir:oracle-gain", "ymir:no-estimator",
                                 "ymir:no-early-loader", "tiresias@pollux", "ymir:orakel"}) {
    const auto made = make_live_policy(name);

    ASSERT_FALSE(made) << name;
    EXPECT_NE(made.error().message.find("themis:auction"), std::string::npos);
    EXPECT_EQ(made.error().message.find("oracle-steps"), std::string::npos) << name;
  }
}

TEST(Policies, ADaemonRunsEveryOther) {
  for (const std::string& name : live_policy_names()) {
    const auto made = make_live_policy(name);

    ASSERT_TRUE(made) << name;
    EXPECT_EQ((*made)->name(), name);
  }
  EXPECT_THAT(live_policy_names(), testing::IsSupersetOf({"ymir", "ymir:no-stop-loss", "srtf"}));
}

TEST(Policies, AllSayWhatTheyAre) {
  for (const std::string& name : policy_names()) {
    EXPECT_FALSE(about_policy(name).empty()) << name;
    EXPECT_LE(about_policy(name).size(), 60u) << name;
  }
  EXPECT_EQ(about_policy("nobody"), "");
}

}  // namespace
}  // namespace ymir
