// A link that is known replaces one link of the forecast and no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ymir/estimate/test_world.h"

namespace ymir {
namespace {

using test::TestWorld;

// One job that has finished, and one that is profiled and was never probed.
struct Pair {
  TestWorld world{7};
  JobId source{}, target{};

  Pair() {
    source = world.submit({.steps = 40});
    world.profile(source);
    const RunId run =
        world.begin({.mode = Mode::kNormal, .job = source, .gpus = 1}, Card{.speedup = {1, 1, 1}});
    while (!world.advance(run, source, 1)) {
    }
    target = world.submit({.steps = 60});
    world.profile(target);
  }
  Forecast with(KnownLinks links) const {
    Estimator estimator = world.estimator();
    estimator.know(std::move(links));
    return estimator.forecast(world.now());
  }
};

const Candidate* find(const Forecast& forecast, Mode mode, JobId job) {
  for (const Candidate& each : forecast.candidates)
    if (each.what.mode == mode && each.what.job == job) return &each;
  return nullptr;
}

double step_seconds(const Candidate& c) {
  return (c.members[0].finish_in.p50 - c.switch_cost.count()) / c.members[0].steps.p50;
}

TEST(KnownLinks, OfStepsReplacesTheStepsAndLeavesTheStepTime) {
  const Pair pair;
  const Forecast before = pair.with({});

  const Forecast after = pair.with({.steps = [](const Snapshot&, const JobView&) {
    return KnownLinks::Steps{.here = 96, .alone = 96};
  }});

  const Candidate *old = find(before, Mode::kNormal, pair.target),
                  *now = find(after, Mode::kNormal, pair.target);
  ASSERT_TRUE(old && now);
  EXPECT_DOUBLE_EQ(now->members[0].steps.p10, 88) << "96 less the 8 of its profile";
  EXPECT_DOUBLE_EQ(now->members[0].steps.p90, 88);
  EXPECT_NE(old->members[0].steps.p50, 88);
  EXPECT_NEAR(step_seconds(*now), step_seconds(*old), 0.05 * step_seconds(*old));
}

TEST(KnownLinks, OfStepTimeReplacesTheStepTimeAndLeavesTheSteps) {
  const Pair pair;
  const Forecast before = pair.with({});

  const Forecast after =
      pair.with({.step_seconds = [](JobId, int gpus, std::optional<JobId>) { return 3.0 / gpus; }});

  const Candidate *old = find(before, Mode::kNormal, pair.target),
                  *now = find(after, Mode::kNormal, pair.target);
  ASSERT_TRUE(old && now);
  EXPECT_EQ(now->members[0].steps.p50, old->members[0].steps.p50);
  EXPECT_EQ(now->members[0].steps.p90, old->members[0].steps.p90);
  EXPECT_NEAR(step_seconds(*now), 3, 0.3);
}

TEST(KnownLinks, OfGainOffersTheSourceThatHelpsAndOnlyThat) {
  const Pair pair;
  const auto with_speedup = [&](double speedup) {
    return pair.with({.speedup = [=](JobId, JobId, Mode) { return speedup; }});
  };

  const Forecast helps = with_speedup(3), harms = with_speedup(0.5);

  EXPECT_EQ(find(pair.with({}), Mode::kTemporal, pair.target), nullptr) << "it was never probed";
  const Candidate* offered = find(helps, Mode::kTemporal, pair.target);
  ASSERT_NE(offered, nullptr);
  EXPECT_NEAR(offered->card.speedup.p50, 3, 1e-3);
  EXPECT_NEAR(offered->card.speedup.p90, offered->card.speedup.p10, 1e-3);
  EXPECT_EQ(find(harms, Mode::kTemporal, pair.target), nullptr);
  const Candidate* alone = find(helps, Mode::kNormal, pair.target);
  EXPECT_EQ(alone->members[0].steps.p50,
            find(pair.with({}), Mode::kNormal, pair.target)->members[0].steps.p50);
}

TEST(KnownLinks, OfSimilarityStandsForProbesAndLeavesTheGainToTheModel) {
  const Pair pair;
  const auto refusal = [&](double similarity) {
    const Forecast forecast = pair.with({.similarity = [=](JobId, JobId) { return similarity; }});
    for (const Refused& each : forecast.refused)
      if (each.job == pair.target && each.partner == pair.source) return each.why;
    return std::string();
  };

  EXPECT_THAT(refusal(-0.2), testing::HasSubstr("probe -0.200"));
  EXPECT_EQ(pair.with({}).refused.size(), 0u) << "nothing to compare without a probe";
}

}  // namespace
}  // namespace ymir
