#include "ymir/schedule/utility.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/rng.h"
#include "ymir/optimize/check.h"
#include "ymir/optimize/planner.h"

namespace ymir {
namespace {

CandidateFacts alone(double age, double fair, double isolated, int idle, double finish) {
  CandidateFacts facts;
  facts.members.push_back(
      {{Seconds(age), Seconds(fair), Seconds(isolated), idle}, Seconds(finish), true});
  facts.unchanged = true;
  return facts;
}

// Whatever the defaults are.
const UtilityOptions kByHand{.length = 0, .spread = 2, .hold = Seconds(300)};

TEST(Utility, EqualsATableComputedByHand) {
  const Utility utility{kByHand};

  // rho = (1800 + 3600) / 3600 = 1.5; shortness 1; psi at the fair share 1.
  EXPECT_DOUBLE_EQ(utility.value(alone(1800, 3600, 3600, 0, 3600)), 1.5);
  // Twice as fast: psi = 3 * 2 / (2 + 2) = 1.5.
  EXPECT_DOUBLE_EQ(utility.value(alone(1800, 3600, 3600, 0, 1800)), 2.25);
  // An hour in four: shortness sqrt(4) = 2; rho = 900 / 900 = 1.
  EXPECT_DOUBLE_EQ(utility.value(alone(0, 900, 900, 0, 900)), 2);
  // Waited for tau rounds: doubled.
  EXPECT_DOUBLE_EQ(utility.value(alone(0, 900, 900, 60, 900)), 4);
  // Clips: rho <= 8 and shortness <= 8 (120 s: sqrt(30) = 5.48 is below).
  EXPECT_DOUBLE_EQ(utility.priority({Seconds(1e7), Seconds(120), Seconds(120), 0}),
                   8 * std::sqrt(30.0));
  // rho >= 0.25 and shortness >= 1/8.
  EXPECT_DOUBLE_EQ(utility.priority({Seconds(0), Seconds(1e7), Seconds(1e9), 0}), 0.25 / 8);
}

TEST(Utility, WeighsTransferAndSwitching) {
  const Utility utility{kByHand};
  CandidateFacts pair = alone(0, 3600, 3600, 0, 3600);
  pair.members.push_back(pair.members[0]);
  pair.transfer_weight = 1.5;
  CandidateFacts changed = pair;
  changed.unchanged = false;
  changed.switching = Seconds(30);

  EXPECT_DOUBLE_EQ(utility.value(pair), 3);
  EXPECT_DOUBLE_EQ(utility.value(changed), 3 * (1 - 30.0 / 300));
}

TEST(Utility, ASwitchLongerThanTheHoldingTimeLeavesTheCandidateOnOffer) {
  const Utility utility{kByHand};
  CandidateFacts facts = alone(0, 3600, 3600, 0, 3600);
  facts.unchanged = false;
  facts.switching = Seconds(300);

  EXPECT_DOUBLE_EQ(utility.value(facts), 0.25);
}

TEST(Utility, ALongJobYieldsLessTheLongerItIs) {
  UtilityOptions options = kByHand;
  options.length = 0.5;
  const Utility utility{options};

  // Four hours, just begun: shortness 1/2, length 2.
  EXPECT_DOUBLE_EQ(utility.value(alone(0, 4 * 3600, 4 * 3600, 0, 4 * 3600)), 1);
  // An hour of the four is left, and it was served its share: shortness 1, length 2.
  EXPECT_DOUBLE_EQ(utility.value(alone(3 * 3600, 3600, 4 * 3600, 0, 3600)), 2);
  EXPECT_DOUBLE_EQ(Utility{kByHand}.value(alone(3 * 3600, 3600, 4 * 3600, 0, 3600)), 1);
}

TEST(Utility, InALongQueueLongJobsYieldToShortOnes) {
  UtilityOptions options = kByHand;
  options.length = 0.5;
  options.long_queue = 2;
  CandidateFacts facts = alone(0, 4 * 3600, 4 * 3600, 0, 4 * 3600);  // shortness 1/2, length 2
  const auto with_queue = [&](double queue) {
    facts.members[0].job.queue = queue;
    return Utility{options}.value(facts);
  };

  EXPECT_DOUBLE_EQ(with_queue(0), 0.5 * 2);
  EXPECT_DOUBLE_EQ(with_queue(2), 0.5 * 2);
  EXPECT_DOUBLE_EQ(with_queue(4), 0.5 * 1.25);
  EXPECT_DOUBLE_EQ(with_queue(20), 0.5 * 1.01);
}

TEST(Utility, GpuTimeThatASizeWastesCostsWhatOthersLoseByIt) {
  UtilityOptions options = kByHand;
  options.thrift = 1;
  CandidateFacts frugal = alone(0, 3600, 3600, 0, 3600);
  frugal.members[0].job.work = 3600;
  frugal.members[0].job.pressure = 0.25;
  frugal.gpus = 1;
  CandidateFacts wasteful = frugal;
  wasteful.gpus = 4;  // for 1.5 times the speed: 9,600 - 3,600 GPU-seconds more
  wasteful.members[0].finish = Seconds(2400);
  CandidateFacts free = wasteful;
  free.members[0].job.pressure = 0;

  EXPECT_DOUBLE_EQ(Utility{options}.value(frugal), 1);
  EXPECT_DOUBLE_EQ(Utility{options}.value(free), 3 * 1.5 / (1.5 + 2));
  const double speed_up = 3600.0 / (2400 + 0.25 * 6000);  // less than 1: not worth it
  EXPECT_DOUBLE_EQ(Utility{options}.value(wasteful), 3 * speed_up / (speed_up + 2));
  options.thrift = 0;
  EXPECT_DOUBLE_EQ(Utility{options}.value(wasteful), Utility{options}.value(free));
}

TEST(Utility, AStartIsNoWaste) {
  const Utility utility{kByHand};
  CandidateFacts facts = alone(0, 600, 600, 0, 660);
  facts.unchanged = false;
  facts.switching = Seconds(60);
  facts.gpus = 1;
  facts.members[0].job.work = 600;
  CandidateFacts pressed = facts;
  pressed.members[0].job.pressure = 5;

  EXPECT_DOUBLE_EQ(utility.value(pressed), utility.value(facts));
}

TEST(Utility, AWaitingPartnerKeepsItsAgeAndDoesNotLiftThePair) {
  const Utility utility{UtilityOptions{}};
  CandidateFacts pair = alone(0, 3600, 3600, 0, 3600);
  MemberFacts waiting = pair.members[0];
  waiting.progresses = false;
  waiting.job.idle_rounds = 600;
  pair.members.push_back(waiting);

  EXPECT_DOUBLE_EQ(utility.value(pair), 2);
  EXPECT_EQ(utility.tier_members(pair), 0);
  pair.members[1].progresses = true;
  EXPECT_DOUBLE_EQ(utility.value(pair), 1 + 101);
  EXPECT_EQ(utility.tier_members(pair), 1);
}

TEST(Utility, GrowsWithAgeUnfairnessAndSpeed) {
  const Utility utility{UtilityOptions{}};
  Rng rng(1);

  for (int k = 0; k < 2000; ++k) {
    const double age = rng.uniform(0, 1e5), fair = rng.uniform(10, 1e5);
    const double isolated = rng.uniform(100, 1e5), finish = rng.uniform(10, 1e5);
    const int idle = static_cast<int>(rng.between(0, 1000));
    const double value = utility.value(alone(age, fair, isolated, idle, finish));
    EXPECT_GT(value, 0);
    EXPECT_GE(utility.value(alone(2 * age, fair, isolated, idle, finish)), value);
    EXPECT_GT(utility.value(alone(age, fair, isolated, idle + 10, finish)), value);
    EXPECT_GE(utility.value(alone(age, fair, isolated, idle, finish / 2)), value);
  }
}

TEST(Utility, SharesSpeedBetweenSizes) {
  const std::vector<SpeedPoint> points = {{2, 1.0}, {4, 1.8}, {8, 3.0}};

  EXPECT_DOUBLE_EQ(speed_at_share(points, 0.5), 0.25);
  EXPECT_DOUBLE_EQ(speed_at_share(points, 2), 1.0);
  EXPECT_DOUBLE_EQ(speed_at_share(points, 3), 1.4);
  EXPECT_DOUBLE_EQ(speed_at_share(points, 6), 2.4);
  EXPECT_DOUBLE_EQ(speed_at_share(points, 100), 3.0);
}

TEST(Utility, TellsWhatAJobMakesOfMoreGpus) {
  const std::vector<SpeedPoint> linear = {{1, 1.0}, {2, 2.0}, {4, 4.0}};
  const std::vector<SpeedPoint> flat = {{1, 1.0}, {2, 1.0}, {4, 0.9}};

  EXPECT_DOUBLE_EQ(use_of_more(linear, 0.25), 1);  // it is time-sliced
  EXPECT_DOUBLE_EQ(use_of_more(linear, 2), 1);
  EXPECT_DOUBLE_EQ(use_of_more(linear, 4), 0);  // it has all it can use
  EXPECT_DOUBLE_EQ(use_of_more(flat, 1), 0);
  EXPECT_DOUBLE_EQ(use_of_more(flat, 2), 0);  // more would slow it down
}

TEST(Utility, TheUnitKeepsBonusesBelowTheLimit) {
  for (const double most : {0.001, 1.0, 46.0, 1e6}) {
    for (const std::int64_t limit : {1000L, 1L << 20, 1L << 24, 1L << 30}) {
      const double unit = utility_unit(most, 4, limit);
      const auto largest = static_cast<std::int64_t>(std::llround(most * unit));
      EXPECT_LE(largest + 2 * tier_bonus(largest, 4), limit) << most << " " << limit;
      EXPECT_EQ(std::exp2(std::round(std::log2(unit))), unit);
    }
  }
}

TEST(Utility, RefusesOptionsOutOfRange) {
  UtilityOptions odd_exponent;
  odd_exponent.shortness = 0.3;
  UtilityOptions odd_length;
  odd_length.length = 0.3;
  UtilityOptions never_calm;
  never_calm.long_queue = 0;
  UtilityOptions negative_thrift;
  negative_thrift.thrift = -1;
  UtilityOptions no_hold;
  no_hold.hold_min = 0;

  EXPECT_FALSE(odd_exponent.validate());
  EXPECT_FALSE(odd_length.validate());
  EXPECT_FALSE(never_calm.validate());
  EXPECT_FALSE(negative_thrift.validate());
  EXPECT_FALSE(no_hold.validate());
  EXPECT_TRUE(UtilityOptions{}.validate());
}

// A tier job runs, or tier jobs at their smallest sizes hold all but g* GPUs.
TEST(Utility, TheHardTierPutsLongWaitersFirst) {
  Rng rng(3);
  Planner planner;
  RoundProblem problem;

  for (int k = 0; k < 300; ++k) {
    const int gpus = static_cast<int>(rng.between(2, 12));
    const int jobs = static_cast<int>(rng.between(2, 10));
    std::vector<std::vector<Option>> options(jobs);
    std::vector<int> smallest(jobs);
    std::vector<bool> tier(jobs);
    std::int64_t largest = 1, needs = 0;
    for (int j = 0; j < jobs; ++j) {
      tier[j] = rng.chance(0.4);
      smallest[j] = static_cast<int>(1 << rng.between(0, 1));
      for (int g = smallest[j]; g <= 8; g *= 2) {
        options[j].push_back(
            {static_cast<std::int32_t>(rng.between(1, 1000)), static_cast<std::uint16_t>(g), 0, 0});
        largest = std::max<std::int64_t>(largest, options[j].back().utility);
      }
      if (tier[j]) needs = std::max<std::int64_t>(needs, smallest[j]);
    }
    problem.reset(std::vector<Capacity>{{gpus, {}}});
    for (int j = 0; j < jobs; ++j) {
      for (Option& option : options[j]) {
        if (tier[j]) option.utility += static_cast<std::int32_t>(tier_bonus(largest, needs));
      }
      problem.add_job(static_cast<std::uint64_t>(j) + 1, options[j]);
    }
    const Solution solution = planner.solve(problem);
    ASSERT_TRUE(check_solution(problem, solution));

    std::int64_t tier_gpus = 0, tier_waiting = std::count(tier.begin(), tier.end(), true);
    for (const Choice& choice : solution.chosen) {
      if (!tier[choice.first]) continue;
      tier_gpus += smallest[choice.first];
      --tier_waiting;
    }
    EXPECT_TRUE(tier_waiting == 0 || tier_gpus > gpus - needs) << k;
  }
}

}  // namespace
}  // namespace ymir
