#include "ymir/estimate/gain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ymir/base/rng.h"

namespace ymir {
namespace {

GainRow row(double similarity, double log_speedup, bool bound = false) {
  return {.input = {.similarity = similarity},
          .log_speedup = log_speedup,
          .upper_bound = bound,
          .deviation = 0.2};
}
GainModel fit(const std::vector<GainRow>& rows, const GainOptions& options = {}) {
  auto model = GainModel::fit(rows, options);
  EXPECT_TRUE(model);
  return *std::move(model);
}

TEST(GainModel, WithoutRowsSaysItsCautiousPrior) {
  const GainModel model = fit({});

  const GainBelief neutral = model.predict({.similarity = 0});
  const GainBelief close = model.predict({.similarity = 0.3});

  EXPECT_EQ(neutral.rows, 0);
  EXPECT_NEAR(neutral.mean, GainOptions{}.intercept, 1e-9);
  EXPECT_LT(neutral.helps(), 0.35);
  EXPECT_GT(close.helps(), neutral.helps());
  EXPECT_LT(close.helps(), 0.75);
}

TEST(GainModel, LearnsALine) {
  Rng rng(1);
  std::vector<GainRow> rows;
  for (int i = 0; i < 200; ++i) {
    const double s = rng.uniform(-0.15, 0.15);
    rows.push_back(row(s, -0.2 + 8 * s + 0.1 * rng.normal()));
  }

  const GainModel model = fit(rows);

  EXPECT_NEAR(model.predict({.similarity = 0}).mean, -0.2, 0.05);
  EXPECT_NEAR(model.predict({.similarity = 0.1}).mean, 0.6, 0.08);
  EXPECT_LT(model.residual(), 0.3);
}

// With a tight residual and wide priors the answer is plain weighted least squares.
TEST(GainModel, EqualsTheNormalEquations) {
  GainOptions options;
  options.slope_deviation = options.intercept_deviation = 100;
  options.other_deviation = 1e-4;
  options.residual_rows = 1e9;
  const std::vector<GainRow> rows{row(-0.1, -0.5), row(0.05, 0.1), row(0.2, 0.4), row(0.3, 1)};
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const GainRow& r : rows) {
    const double s = 4 * std::tanh(r.input.similarity / 0.1 / 4);
    n += 1, x += s, y += r.log_speedup, xx += s * s, xy += s * r.log_speedup;
  }

  const GainModel model = fit(rows, options);

  const double slope = (n * xy - x * y) / (n * xx - x * x);
  EXPECT_NEAR(model.weights()[1], slope, 1e-3);
  EXPECT_NEAR(model.weights()[0], (y - slope * x) / n, 1e-3);
}

TEST(GainModel, NegativeEvidenceForbids) {
  const double before = fit({}).predict({.similarity = 0.2}).helps();

  const double after =
      fit({row(0.2, -0.7), row(0.25, -0.9), row(0.15, -0.5)}).predict({.similarity = 0.2}).helps();

  EXPECT_LT(after, 0.3);
  EXPECT_LT(after, before);
}

TEST(GainModel, AnUpperBoundFarAboveSaysNothingAndOneFarBelowPullsDown) {
  const GainInput at{.similarity = 0.1};
  const GainBelief prior = fit({}).predict(at);

  const GainBelief high = fit({row(0.1, 3, true)}).predict(at);
  const GainBelief low = fit({row(0.1, -1.5, true)}).predict(at);
  const GainBelief exact = fit({row(0.1, -1.5)}).predict(at);

  EXPECT_NEAR(high.mean, prior.mean, 0.01);
  EXPECT_NEAR(high.deviation, prior.deviation, 0.02);
  EXPECT_LT(low.mean, prior.mean - 0.3);
  EXPECT_LE(low.mean, exact.mean + 0.25);
}

// The posterior mode of the intercept under one bound, by brute force.
TEST(GainModel, BoundsEnterByTheTobitLikelihood) {
  GainOptions options;
  options.slope_deviation = options.other_deviation = 1e-6;
  options.residual_rows = 1e9;
  const double noise = std::hypot(options.residual, 0.2);
  double best = 0, best_value = -INFINITY;
  for (double w = -3; w < 2; w += 1e-4) {
    const double z = (w - options.intercept) / options.intercept_deviation;
    const double p = 0.5 * std::erfc(-(-1.0 - w) / noise / std::sqrt(2.0));
    const double value = -0.5 * z * z + std::log(p);
    if (value > best_value) best_value = value, best = w;
  }

  const GainModel model = fit({row(0, -1.0, true)}, options);

  EXPECT_NEAR(model.weights()[0], best, 1e-3);
}

TEST(GainModel, ShuffledSimilaritiesGiveNoSlopeAndNoAdmission) {
  Rng rng(3);
  std::vector<GainRow> rows;
  for (int i = 0; i < 60; ++i) {
    rows.push_back(row(rng.uniform(-0.1, 0.3), rng.chance(0.25) ? 0.8 : -0.6));
  }

  const GainModel model = fit(rows);

  EXPECT_LT(model.predict({.similarity = 0.3}).helps(), 0.6);
}

TEST(GainModel, IntervalsCoverWhatTheyClaim) {
  Rng rng(4);
  int inside = 0;
  constexpr int kSets = 1000;
  for (int set = 0; set < kSets; ++set) {
    // A world drawn from the prior, twelve rows of it, and a thirteenth to predict.
    const GainOptions prior;
    const double intercept = prior.intercept + prior.intercept_deviation * rng.normal();
    const double slope = prior.slope + prior.slope_deviation * rng.normal();
    auto draw_row = [&] {
      const double s = rng.uniform(-0.2, 0.3);
      const double x = 4 * std::tanh(s / 0.1 / 4);
      return row(s, intercept + slope * x + prior.residual * rng.normal());
    };
    std::vector<GainRow> rows;
    for (int i = 0; i < 12; ++i) {
      rows.push_back(draw_row());
      rows.back().log_speedup += rows.back().deviation * rng.normal();
    }
    const GainRow next = draw_row();
    const GainBelief belief = fit(rows).predict(next.input);
    const double z = std::abs(next.log_speedup - belief.mean) / belief.deviation;
    inside += z <= 1.2816;
  }

  EXPECT_NEAR(static_cast<double>(inside) / kSets, 0.8, 0.03);
}

TEST(GainOptions, RefuseAPriorWithoutWidth) {
  EXPECT_FALSE(GainModel::fit({}, {.slope_deviation = 0}));
  EXPECT_FALSE(GainModel::fit({}, {.residual = -1}));
}

TEST(GainBook, KeepsModelsApart) {
  GainBook book;
  for (int i = 0; i < 5; ++i) book.add("a temporal", row(0.2, -1));

  EXPECT_EQ(book.model("a temporal").rows(), 5);
  EXPECT_EQ(book.model("b temporal").rows(), 0);
  EXPECT_LT(book.model("a temporal").predict({.similarity = 0.2}).mean,
            book.model("b temporal").predict({.similarity = 0.2}).mean);
}

}  // namespace
}  // namespace ymir
