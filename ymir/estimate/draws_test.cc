#include "ymir/estimate/draws.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "ymir/estimate/weigh.h"

namespace ymir {
namespace {

TEST(Draws, ReproduceTheIntervalTheyWereDrawnFrom) {
  const Interval wide{2, 10, 70};

  const Interval seen = interval_of(draw(wide, Dimension::kCurve));

  EXPECT_NEAR(std::log(seen.p10 / wide.p10), 0, 0.2);
  EXPECT_NEAR(std::log(seen.p50 / wide.p50), 0, 0.1);
  EXPECT_NEAR(std::log(seen.p90 / wide.p90), 0, 0.2);
}

TEST(Draws, OfAnExactNumberAreThatNumber) {
  EXPECT_EQ(interval_of(draw(Interval::exactly(3), Dimension::kGain)), Interval::exactly(3));
}

TEST(Draws, DimensionsAreEquidistributedAndNotCorrelated) {
  for (const auto a : {Dimension::kCurve, Dimension::kStepTime, Dimension::kGain}) {
    for (const auto b : {Dimension::kSwitch, Dimension::kGain}) {
      double mean = 0, product = 0;
      for (std::size_t i = 0; i < kNumDraws; ++i) {
        mean += uniform(a)[i] / kNumDraws;
        product += (uniform(a)[i] - 0.5) * (uniform(b)[i] - 0.5) * 12 / kNumDraws;
      }
      EXPECT_NEAR(mean, 0.5, 0.02);
      if (a != b) {
        EXPECT_NEAR(product, 0, 0.15);
      }
    }
  }
}

TEST(Draws, IntervalsStayOrderedAndPositive) {
  rc::check("p10 <= p50 <= p90 of a ratio of two uncertain numbers", [] {
    auto interval = [] {
      const double middle = std::exp(*rc::gen::inRange(-500, 500) / 100.0);
      const double down = std::exp(-*rc::gen::inRange(0, 200) / 100.0);
      const double up = std::exp(*rc::gen::inRange(0, 200) / 100.0);
      return Interval{middle * down, middle, middle * up};
    };
    Draws a = draw(interval(), Dimension::kCurve);
    const Draws b = draw(interval(), Dimension::kGain);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] /= b[i];
    const Interval ratio = interval_of(a);
    RC_ASSERT(ratio.p10 > 0);
    RC_ASSERT(ratio.p10 <= ratio.p50);
    RC_ASSERT(ratio.p50 <= ratio.p90);
  });
}

TEST(NormalScores, InvertTheDistribution) {
  EXPECT_NEAR(normal_quantile(0.9), kZ90, 1e-12);
  for (const double p : {0.001, 0.2, 0.5, 0.97})
    EXPECT_NEAR(normal_cdf(normal_quantile(p)), p, 1e-12);
}

// The example of the mission: A 100 s, B 80 s; temporal, B needs 50 s after A; spatial, both need
// 143 s.
TEST(TransferWeight, OfTheMissionsExample) {
  EXPECT_NEAR(temporal_weight(100, 80, 50), 1.04, 1e-12);
  EXPECT_NEAR(spatial_weight(100, 80, 143, 143), 0.909, 5e-4);
  EXPECT_NEAR((100.0 + 80) / (100 + 50), 1.20, 1e-12);  // work ratio
  EXPECT_NEAR((100.0 + 80) / 143, 1.26, 2e-3);
}

TEST(TransferWeight, IsAtMostOneWithoutAnyGain) {
  EXPECT_LE(temporal_weight(100, 80, 80), 1);
  EXPECT_LE(temporal_weight(80, 100, 100), 1);
  EXPECT_EQ(finished_source_weight(80, 80), 1);
}

TEST(SpatialTimes, TheFirstToFinishLeavesAndTheOtherGoesOnAlone) {
  const SpatialTimes t = spatial_times(10, 30, 2, 1, 5, 0.5);

  EXPECT_EQ(t.first, 5 + 10 * 2);
  EXPECT_EQ(t.second, t.first + 0.5 + 20 * 1);
}

TEST(Saving, ALossIsCutWhereTheStopLossFindsIt) {
  EXPECT_EQ(saving(100, 60, 10, 0.8), 40);
  EXPECT_EQ(saving(100, 160, 10, 1), -10);
  EXPECT_EQ(saving(100, 160, 10, 0), -60);
  EXPECT_DOUBLE_EQ(saving(100, 160, 10, 0.5), -35);
  EXPECT_EQ(saving(100, 104, 10, 1), -4);
}

}  // namespace
}  // namespace ymir
