#include "ymir/schedule/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/base/rng.h"
#include "ymir/schedule/test_round.h"

namespace ymir {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

using Settings = std::map<std::string, std::string>;

Plan decided(const TestRound& test, const std::string& policy = "ymir",
             const Settings& settings = {}) {
  return plan_by(policy, test, settings);
}

bool same(const Plan& a, const Plan& b) {
  return in_short(a) == in_short(b) && a.value == b.value && a.bound == b.bound &&
         a.proof == b.proof;
}

// Two jobs on one GPU: one after the other takes 300 + 600 s.
TestRound two_jobs() {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 300);
  test.alone(2, 1, 600);
  return test;
}

TEST(Pipeline, RunsTheShorterJobFirst) {
  const TestRound test = two_jobs();

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1");
  EXPECT_EQ(plan.proof, "optimal");
  EXPECT_THAT(why_waits(plan, 2), StartsWith("no_capacity gpus=1 price="));
}

TEST(Pipeline, ALongJobGoesFirstOnlyWhereTheQueueIsShort) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 8 * 3600);
  test.alone(2, 1, 3600);
  const auto with = [&](const char* long_queue) {
    return in_short(decided(test, "ymir", {{"length", "1"}, {"long_queue", long_queue}}));
  };

  // Nine hours of work for one GPU, two jobs: a queue of 18.
  EXPECT_EQ(with("18"), "j1x1");
  EXPECT_EQ(with("4"), "j2x1");
}

// A short job that makes little of four GPUs, and a long one that can use all.
TestRound short_beside_long() {
  TestRound test({4});
  test.job(1, 4);
  test.job(2, 4);
  test.alone(1, 1, 900);
  test.alone(1, 4, 600);
  test.alone_at_all_sizes(2, 40'000);
  return test;
}

TEST(Pipeline, WastesNoGpusOnAShortJobWhileALongOneCanUseThem) {
  const TestRound test = short_beside_long();

  const Plan plan = decided(test, "ymir", {{"length", "0"}});
  const Plan spendthrift = decided(test, "ymir", {{"length", "0"}, {"thrift", "0"}});

  EXPECT_EQ(in_short(plan), "j1x1 j2x2");
  EXPECT_EQ(in_short(spendthrift), "j1x4");
}

TEST(Pipeline, AJobWithTheClusterToItselfTakesItsFastestSize) {
  Rng rng(5);

  for (int k = 0; k < 100; ++k) {
    TestRound test({8});
    test.job(1, 8);
    int fastest = 1;
    double least = 1e9;
    for (const int gpus : {1, 2, 4, 8}) {
      const double seconds = rng.uniform(1000, 20'000);
      test.alone(1, gpus, seconds);
      if (seconds < least) fastest = gpus;
      least = std::min(least, seconds);
    }

    const Plan plan = decided(test);

    ASSERT_EQ(plan.assignments.size(), 1u);
    EXPECT_EQ(plan.assignments[0].what.gpus, fastest);
  }
}

TEST(Pipeline, ChoosesATransferThatPays) {
  TestRound test = two_jobs();
  test.temporal(2, 1, 1, 300, 500, 1.5);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1->j2x1");
  EXPECT_GT(plan.assignments[0].utility, 0);
  EXPECT_GT(plan.assignments[0].regret, 0);
}

TEST(Pipeline, StartsFromAFinishedSourceAsABetterWayToBeAlone) {
  TestRound test = two_jobs();
  test.cluster.jobs.at(JobId{1}).state = JobState::kSucceeded;
  test.temporal(2, 1, 1, 0, 200, 3);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1->j2x1");
}

TEST(Pipeline, TrainsTwoTogetherWhenThatIsSoonerForBoth) {
  TestRound test = two_jobs();
  test.spatial(1, 2, 1, 250, 350, 1.9);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1+j2x1");
}

TEST(Pipeline, RefusesAPairBelowTheLeastTransferWeightAndSaysSo) {
  TestRound test = two_jobs();
  test.temporal(2, 1, 1, 300, 580, 1.05);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1");
  EXPECT_THAT(why_waits(plan, 2), HasSubstr("refused=temporal:j1 transfer_weight 1.05 < 1.1"));
}

TEST(Pipeline, KeepsARunningPairOnOfferWhateverItsWeightAndProgress) {
  TestRound test = two_jobs();
  test.spatial(1, 2, 1, 100, 150, 1.0).switch_cost = Seconds(0);
  test.runs({.mode = Mode::kSpatial, .job = JobId{1}, .partner = JobId{2}, .gpus = 1},
            {JobId{1}, JobId{2}});

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1+j2x1");
}

TEST(Pipeline, BeginsNoPairWithProgress) {
  TestRound test({2});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 300);
  test.alone(2, 1, 600);
  test.temporal(2, 1, 1, 300, 400, 2);
  test.spatial(1, 2, 1, 200, 200, 3);
  test.runs_alone(2, 1);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1 j2x1");
}

TEST(Pipeline, LetsNobodyWaitLongerForAPartnerThanItsOwnerAllows) {
  TestRound test = two_jobs();
  test.cluster.jobs.at(JobId{2}).spec.sharing.max_wait_for_partner = Seconds(200);
  test.temporal(2, 1, 1, 300, 400, 2);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1");
  EXPECT_THAT(why_waits(plan, 2), HasSubstr("partner_wait 300s > 200s"));
}

TEST(Pipeline, LetsNobodyWaitForPartnersForEver) {
  TestRound test = two_jobs();
  test.temporal(2, 1, 1, 300, 400, 2);
  test.cluster.jobs.at(JobId{2}).last_progress = from_seconds(0);

  const Plan waits = decided(test);
  const Plan refuses = decided(test, "ymir", {{"partner_wait_max", "900"}});

  EXPECT_EQ(in_short(waits), "j1->j2x1");
  EXPECT_THAT(in_short(refuses), testing::Not(HasSubstr("->")));
}

TEST(Pipeline, RunsAJobAloneWhenSharingWouldMissItsDeadline) {
  TestRound test({2});
  test.job(1);
  test.job(2).spec.deadline = test.cluster.now + Seconds(750);
  test.alone(1, 1, 300);
  test.alone(2, 1, 600);
  test.temporal(2, 1, 1, 300, 700, 4);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1 j2x1");
}

TEST(Pipeline, WidensJobsWhileGpusAreFree) {
  TestRound test({4});
  test.job(1, 4);
  test.alone_at_all_sizes(1, 4000);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x4");
}

TEST(Pipeline, SharesTheGpusOfSeveralElasticJobs) {
  TestRound test({4});
  for (std::uint64_t id : {1, 2}) {
    test.job(id, 4);
    test.alone_at_all_sizes(id, 4000);
  }

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x2 j2x2");
}

TEST(Pipeline, DoesNotStopARunForASmallAdvantage) {
  TestRound test = two_jobs();
  test.forecast = {};
  test.alone(1, 1, 600, 0);
  test.alone(2, 1, 560, 60);
  test.runs_alone(1, 1);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x1");
}

TEST(Pipeline, OffersNothingToAJobThatIsBeingProfiled) {
  TestRound test = two_jobs();
  test.cluster.jobs.at(JobId{1}).state = JobState::kProfiling;

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j2x1");
  EXPECT_EQ(why_waits(plan, 1), "profiling");
}

TEST(Pipeline, TellsAJobThatFitsNoNode) {
  TestRound test({2, 2});
  test.job(1, 4, 4);
  test.alone(1, 4, 100);

  const Plan plan = decided(test);

  EXPECT_EQ(why_waits(plan, 1), "does_not_fit_a_node gpus=4 largest=2");
}

TEST(Pipeline, PacksOddSizesOnUnequalNodes) {
  TestRound test({3, 2});
  for (std::uint64_t id : {1, 2}) {
    test.job(id, 3, 3);
    test.cluster.jobs.at(JobId{id}).spec.sizes = {3};
    test.alone(id, 3, 100.0 * static_cast<double>(id));
  }
  test.job(3, 2, 2);
  test.alone(3, 2, 500);

  const Plan plan = decided(test);

  EXPECT_EQ(in_short(plan), "j1x3 j3x2");
}

TEST(Pipeline, PutsAJobOfTheHardTierFirst) {
  TestRound test({1});
  test.job(1);
  test.job(2);
  test.alone(1, 1, 130);
  test.alone(2, 1, 100'000);
  test.cluster.now = from_seconds(100'000);
  test.cluster.jobs.at(JobId{1}).submitted = from_seconds(99'900);
  test.cluster.jobs.at(JobId{1}).last_progress = from_seconds(99'900);
  test.cluster.jobs.at(JobId{2}).submitted = from_seconds(99'000);
  test.cluster.jobs.at(JobId{2}).last_progress = from_seconds(99'000);

  const Plan usual = decided(test);
  const Plan hard = decided(test, "ymir", {{"hard_tier", "5"}});

  EXPECT_EQ(in_short(usual), "j1x1");
  EXPECT_EQ(in_short(hard), "j2x1");
}

// A round by chance: jobs of several sizes, some running, and pairs among them.
TestRound random_round(std::uint64_t seed, bool pairs) {
  Rng rng(seed);
  TestRound test({4, 4});
  const std::uint64_t num_jobs = 2 + rng.below(10);
  for (std::uint64_t id = 1; id <= num_jobs; ++id) {
    const int largest = 1 << rng.below(3);
    test.job(id, largest);
    test.alone_at_all_sizes(id, rng.uniform(200, 5000));
  }
  for (std::uint64_t a = 1; a <= num_jobs && pairs; ++a)
    for (std::uint64_t b = a + 1; b <= num_jobs; ++b) {
      if (!rng.chance(0.4)) continue;
      const double weight = rng.uniform(0.8, 1.6);
      test.temporal(b, a, 1, rng.uniform(100, 500), rng.uniform(500, 2000), weight);
      test.spatial(a, b, 1, rng.uniform(100, 500), rng.uniform(500, 2000), weight);
    }
  return test;
}

TEST(Pipeline, MakesASoundPlanOfAnyRound) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const TestRound test = random_round(seed, true);

    const Plan plan = decided(test);  // checks the plan

    EXPECT_EQ(plan.proof, "optimal") << "seed " << seed;
    EXPECT_EQ(plan.value, plan.bound) << "seed " << seed;
  }
}

TEST(Pipeline, DecidesTheSameTwice) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const TestRound test = random_round(seed, true);

    EXPECT_TRUE(same(decided(test), decided(test))) << "seed " << seed;
  }
}

TEST(Pipeline, WithoutPairsEqualsTheElasticScheduler) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const TestRound test = random_round(seed, false);

    EXPECT_TRUE(same(decided(test), decided(test, "ymir:no-transfer"))) << "seed " << seed;
  }
}

TEST(Pipeline, WithPairsThatAreAllRefusedEqualsTheElasticScheduler) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    TestRound test = random_round(seed, true);
    for (auto& [id, job] : test.cluster.jobs) job.spec.sharing.allow = false;

    EXPECT_TRUE(same(decided(test), decided(test, "ymir:no-transfer"))) << "seed " << seed;
  }
}

TEST(Pipeline, DecidesTheSameWithDominanceLeftToTheSolver) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const TestRound test = random_round(seed, true);

    const Plan with = decided(test), without = decided(test, "ymir", {{"pass.dominance", "off"}});

    EXPECT_EQ(with.value, without.value) << "seed " << seed;
  }
}

TEST(Pipeline, NeverLosesValueByAFurtherPair) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const TestRound test = random_round(seed, true);

    EXPECT_GE(decided(test).value, decided(test, "ymir:no-transfer").value) << "seed " << seed;
  }
}

TEST(Pipeline, TimesEachPassByName) {
  const TestRound test = two_jobs();
  const Round round = test.round();

  const auto decision = (*make_policy("ymir"))->decide(round);

  ASSERT_TRUE(decision);
  for (const std::string& pass : Pipeline::passes())
    EXPECT_THAT(decision->pass_ms, Contains(testing::Key(pass)));
}

TEST(PipelineOptions, RefusesWhatItDoesNotKnow) {
  const auto unknown_pass = make_policy("ymir", {{"pass.filter_savin", "off"}});
  const auto needed_pass = make_policy("ymir", {{"pass.filter_sharing", "off"}});
  const auto unknown_knob = make_policy("ymir", {{"taw", "3"}});
  const auto bad_value = make_policy("ymir", {{"unfairness", "0.3"}});

  EXPECT_THAT(unknown_pass.error().message, HasSubstr("did you mean pass.filter_saving"));
  EXPECT_THAT(needed_pass.error().message, HasSubstr("can't be switched off"));
  EXPECT_THAT(unknown_knob.error().message, HasSubstr("did you mean tau"));
  EXPECT_THAT(bad_value.error().message, HasSubstr("multiple of 0.5"));
}

}  // namespace
}  // namespace ymir
