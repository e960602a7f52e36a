#include "ymir/estimate/solo_curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ymir/base/rng.h"
#include "ymir/estimate/transfer_curve.h"

namespace ymir {
namespace {

// A curve from 0.5 that meets 0.2 after `steps`.
LearningCurve truth(double steps) {
  LearningCurve c{.start = 0.5, .floor = 0.16, .power = 2, .steps_to_target = steps};
  c.half = steps / std::sqrt(0.34 / 0.04 - 1);
  return c;
}
std::vector<ErrorPoint> seen(const LearningCurve& curve, double speedup, int count, Rng* rng) {
  std::vector<ErrorPoint> points;
  for (int i = 1; i <= count; ++i) {
    const double e = curve.error(speedup * 8 * i);
    points.push_back({8.0 * i, e + (rng ? 0.02 * rng->normal() : 0), 0.02 * 0.02 + 0.03 * 0.03});
  }
  return points;
}
SoloEvidence evidence(std::vector<ErrorPoint> points) {
  SoloEvidence e{.start = 0.5,
                 .goal = 0.2,
                 .points = std::move(points),
                 .prior_steps = log_normal(std::log(50), 0.7)};
  if (!e.points.empty()) e.not_reached_before = e.points.back().step;
  return e;
}
double width(const Interval& x) { return std::log(x.p90 / x.p10); }

TEST(SoloBelief, WithoutEvaluationsIsThePrior) {
  const Interval steps = SoloBelief(evidence({})).steps();

  EXPECT_NEAR(std::log(steps.p50 / 50), 0, 0.1);
  EXPECT_NEAR(width(steps), 2 * kZ90 * 0.7, 0.2);
}

TEST(SoloBelief, EvaluationsNarrowItTowardsTheTruth) {
  const LearningCurve slow = truth(120);
  const SoloBelief few(evidence(seen(slow, 1, 2, nullptr)));
  const SoloBelief many(evidence(seen(slow, 1, 10, nullptr)));

  EXPECT_GT(few.steps().p50, 50);
  EXPECT_NEAR(std::log(many.steps().p50 / 120), 0, 0.35);
  EXPECT_LT(width(many.steps()), width(few.steps()));
}

TEST(SoloBelief, NeverPredictsATargetThatWasSeenUnmet) {
  const SoloBelief belief(evidence(seen(truth(400), 1, 12, nullptr)));

  EXPECT_GT(belief.steps().p10, 96);
}

TEST(SoloBelief, ItsIntervalCoversCurvesDrawnFromItsPrior) {
  Rng rng(8);
  int inside = 0;
  constexpr int kJobs = 300;
  for (int i = 0; i < kJobs; ++i) {
    const LearningCurve curve = truth(std::exp(std::log(50) + 0.7 * rng.normal()));
    std::vector<ErrorPoint> points;
    for (const ErrorPoint& p : seen(curve, 1, 3, &rng)) {
      if (p.step < curve.steps_to_target) points.push_back(p);
    }
    const Interval steps = SoloBelief(evidence(points)).steps();
    inside += steps.p10 <= curve.steps_to_target && curve.steps_to_target <= steps.p90;
  }

  EXPECT_GE(inside, kJobs * 0.72);
  EXPECT_LE(inside, kJobs * 0.97);
}

TEST(MergedBelief, SeesAHelpfulAndAHarmfulPartner) {
  const LearningCurve alone = truth(55);
  const SoloBelief solo(evidence(seen(alone, 1, 1, nullptr)));
  const Interval prior = log_normal(-0.1, 0.8);

  const MergedBelief unseen(solo, prior, {}, 1, 160);
  const MergedBelief helped(solo, prior, seen(alone, 2.8, 2, nullptr), 1, 160);
  const MergedBelief harmed(solo, prior, seen(alone, 0.4, 4, nullptr), 1, 160);

  EXPECT_NEAR(std::log(unseen.speedup().p50), -0.1, 0.1);
  EXPECT_GT(helped.helps(16, 8), 0.7);  // its pace may fade
  EXPECT_GT(helped.speedup().p50, 1.2);
  EXPECT_LT(helped.lost_by_going_on(16, 8), 0);
  EXPECT_LT(harmed.helps(32, 8), 0.35);
  EXPECT_LT(harmed.speedup().p50, 0.9);
  EXPECT_GT(harmed.lost_by_going_on(32, 8), 0);
}

TEST(MergedBelief, PureNoiseAroundTheSoloCurveIsSeldomCalledHarm) {
  Rng rng(5);
  int wrong = 0;
  constexpr int kRuns = 200;
  for (int i = 0; i < kRuns; ++i) {
    const LearningCurve alone = truth(rng.uniform(40, 80));
    const SoloBelief solo(evidence(seen(alone, 1, 1, &rng)));
    const MergedBelief same(solo, log_normal(0.4, 0.6), seen(alone, 1.6, 4, &rng), 1, 160);
    wrong += same.helps(32, 0) < 0.35;
  }

  EXPECT_LE(wrong, kRuns / 20);  // of transfers that do help
}

TEST(MergedBelief, ItsStepsAreThoseOfTheStretchedCurve) {
  const LearningCurve alone = truth(60);
  const SoloBelief solo(evidence(seen(alone, 1, 6, nullptr)));

  const Interval steps = interval_of(
      MergedBelief(solo, log_normal(0, 0.8), seen(alone, 3, 2, nullptr), 1, 160).steps());

  EXPECT_GT(20, 0.85 * steps.p10);  // no sooner than the evaluation after the last one
  EXPECT_LT(20, 1.3 * steps.p90);
}

TEST(ClassPriors, LearnFromFinishedJobsAndKeepClassesApart) {
  ClassPriors priors;
  const Interval before = priors.steps("a", 160);

  for (const double steps : {30.0, 40.0, 50.0, 35.0}) priors.add("a", steps, true, 160);

  const Interval after = priors.steps("a", 160);
  EXPECT_NEAR(before.p50, 56, 1);
  EXPECT_LT(after.p50, before.p50);
  EXPECT_LT(width(after), width(before));
  EXPECT_EQ(priors.steps("b", 160), before);
  EXPECT_EQ(priors.rows("a"), 4);
}

TEST(ClassPriors, AJobThatMissedItsTargetCountsAsLonger) {
  ClassPriors met, missed;
  met.add("a", 100, true, 160), missed.add("a", 100, false, 160);

  EXPECT_GT(missed.steps("a", 160).p50, met.steps("a", 160).p50);
}

}  // namespace
}  // namespace ymir
