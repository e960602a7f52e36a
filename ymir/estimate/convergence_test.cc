#include "ymir/estimate/convergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/rng.h"
#include "ymir/estimate/fit_command.h"

namespace ymir {
namespace {

std::vector<CurvePoint> points_of(const RationalCurve& curve, int count, double spacing) {
  std::vector<CurvePoint> points;
  for (int i = 1; i <= count; ++i) points.push_back({i * spacing, curve.at(i * spacing)});
  return points;
}

TEST(RationalCurve, FindsTheStepOfALossAndItsSteepestPoint) {
  const RationalCurve falling{0.001, 0.02, 1, 0.1}, flat_at_first{1e-4, 0, 1, 0};

  EXPECT_NEAR(*falling.step_at(falling.at(37)), 37, 1e-9);
  EXPECT_EQ(falling.step_at(2), 0.0);
  EXPECT_FALSE(falling.step_at(0.1).has_value());
  EXPECT_NEAR(flat_at_first.steepest(), std::sqrt(4e-4 / 3) / 2e-4, 1e-9);
  EXPECT_EQ((RationalCurve{0, 0.1, 1, 0}).steepest(), 0);
}

TEST(FitCurve, RecoversBothFamiliesWithoutNoise) {
  for (const RationalCurve& truth :
       {RationalCurve{0, 0.02, 0.9, 0.12}, RationalCurve{4e-5, 0.004, 0.8, 0.2}}) {
    const auto fit = fit_curve(points_of(truth, 40, 5), {.replicas = 0});

    ASSERT_TRUE(fit);
    const double target = truth.at(400);
    const Steps steps = steps_to(*fit, target);
    ASSERT_FALSE(steps.censored);
    EXPECT_NEAR(steps.value.p50 / 400, 1, 2e-3) << truth.a;
    const std::string family = truth.a > 0 ? "R1" : "R0";
    const auto own = std::ranges::find(fit->curves, family, &WeightedCurve::family);
    ASSERT_NE(own, fit->curves.end());
    EXPECT_NEAR(own->curve.a, truth.a, 1e-3 * truth.a + 1e-12);
    EXPECT_NEAR(own->curve.b / truth.b, 1, 1e-3);
    EXPECT_NEAR(own->curve.c / truth.c, 1, 1e-3);
    EXPECT_NEAR(own->curve.d / truth.d, 1, 1e-3);
  }
}

TEST(FitCurve, AgreesWithTheReferenceProgram) {
  const auto text = read_file(std::string(YMIR_SOURCE_DIR) + "/tests/reference/curve_values.json");
  ASSERT_TRUE(text);
  const auto json = parse_json(*text);
  ASSERT_TRUE(json);
  std::vector<double> noisy, reference_noisy;
  int inside = 0, total = 0;

  for (const Json& c : json->at("cases")) {
    std::vector<CurvePoint> points;
    for (std::size_t i = 0; i < c.at("step").size(); ++i) {
      points.push_back({c.at("step")[i].get<double>(), c.at("loss")[i].get<double>()});
    }
    const auto fit = fit_curve(points, {.replicas = 20});
    ASSERT_TRUE(fit);
    const Steps steps = steps_to(*fit, c.at("target").get<double>());
    const double truth = c.at("steps_of_truth").get<double>();
    if (!c.at("noisy").get<bool>()) {
      ASSERT_FALSE(steps.censored);
      EXPECT_NEAR(steps.value.p50 / truth, 1, 0.01) << total;
      EXPECT_NEAR(steps.value.p50 / c.at("steps_by_scipy").get<double>(), 1, 0.01);
    } else {
      if (!steps.censored) noisy.push_back(std::abs(std::log(steps.value.p50 / truth)));
      if (!c.at("steps_by_scipy").is_null()) {
        reference_noisy.push_back(std::abs(std::log(c.at("steps_by_scipy").get<double>() / truth)));
      }
      inside += !steps.censored && steps.value.p10 <= truth && truth <= steps.value.p90;
    }
    ++total;
  }

  std::ranges::sort(noisy), std::ranges::sort(reference_noisy);
  EXPECT_EQ(total, 60);
  ASSERT_GE(noisy.size(), 25u);
  // Not worse than plain least squares on the same points.
  EXPECT_LE(noisy[noisy.size() / 2], 1.2 * reference_noisy[reference_noisy.size() / 2]);
  EXPECT_GE(inside, 22);  // of 30, for an interval of 80 %
}

TEST(FitCurve, ScalingStepsOrLossesChangesNothingButUnits) {
  const RationalCurve truth{3e-5, 0.01, 0.7, 0.2};
  std::vector<CurvePoint> points = points_of(truth, 30, 7), scaled = points;
  Rng rng(1);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].loss *= 1 + 0.02 * rng.normal();
    scaled[i] = {8 * points[i].step, 4 * points[i].loss};
  }

  const Steps one = steps_to(*fit_curve(points, {}), 0.3);
  const Steps other = steps_to(*fit_curve(scaled, {}), 1.2);

  ASSERT_FALSE(one.censored);
  EXPECT_NEAR(other.value.p10, 8 * one.value.p10, 1e-6 * other.value.p10);
  EXPECT_NEAR(other.value.p50, 8 * one.value.p50, 1e-6 * other.value.p50);
  EXPECT_NEAR(other.value.p90, 8 * one.value.p90, 1e-6 * other.value.p90);
}

TEST(FitCurve, OrderAndRepetitionDoNotMatterAndWhatIsNotFiniteIsDropped) {
  const std::vector<CurvePoint> points = points_of({0, 0.02, 0.9, 0.12}, 20, 5);
  std::vector<CurvePoint> mixed(points.rbegin(), points.rend());
  mixed.insert(mixed.end(), points.begin(), points.end());
  mixed.push_back({33, std::numeric_limits<double>::quiet_NaN()});
  mixed.push_back({std::numeric_limits<double>::infinity(), 0.3});

  const auto a = fit_curve(points, {}), b = fit_curve(mixed, {});

  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->points, b->points);
  EXPECT_EQ(steps_to(*a, 0.2).value, steps_to(*b, 0.2).value);
}

TEST(FitCurve, OneWildPointHardlyMoves) {
  const RationalCurve truth{0, 0.02, 0.9, 0.12};
  std::vector<CurvePoint> points = points_of(truth, 30, 5);
  points[14].loss *= 3;

  const Steps steps = steps_to(*fit_curve(points, {}), truth.at(300));

  ASSERT_FALSE(steps.censored);
  EXPECT_NEAR(steps.value.p50 / 300, 1, 0.05);
}

TEST(FitCurve, RefusesTooFewAndSaysWhenItDoesNotConverge) {
  std::vector<CurvePoint> rising, constant;
  for (int i = 1; i <= 12; ++i) {
    rising.push_back({i * 1.0, 0.5 + 0.05 * i});
    constant.push_back({i * 1.0, 0.5});
  }

  EXPECT_FALSE(fit_curve(std::vector<CurvePoint>{{1, 1}, {2, 0.5}}, {}));
  EXPECT_FALSE(fit_curve(std::vector<CurvePoint>{{1, 1}, {1, 0.9}, {1, 0.8}, {2, 0.5}}, {}));
  EXPECT_FALSE(fit_curve(rising, {.replicas = -1}));
  const auto up = fit_curve(rising, {}), flat = fit_curve(constant, {});
  ASSERT_TRUE(up && flat);
  EXPECT_TRUE(steps_to(*up, 0.4).censored);
  EXPECT_TRUE(steps_to(*flat, 0.4).censored);
}

TEST(StepsTo, ATargetBelowTheFloorIsCensored) {
  const auto fit = fit_curve(points_of({0, 0.02, 0.9, 0.3}, 40, 5), {});

  const Steps steps = steps_to(*fit, 0.2);

  EXPECT_TRUE(steps.censored);
  EXPECT_EQ(steps.at_least, 200);
}

// b = 0, c = 1: improvement per step rises first. The answer is where it falls below epsilon.
TEST(StepsToConvergence, TakesTheSecondCrossingAndRefusesAUnitThatIsTooFine) {
  auto exactly = [](double a) {
    CurveFit fit;
    fit.curves = {{"R1", {a, 0, 1, 0}, 1, 0}};
    fit.points = 50;
    return fit;
  };
  const RationalCurve curve{1e-4, 0, 1, 0};

  const auto found = steps_to_convergence(exactly(1e-4), {.epsilon = 0.001, .unit_steps = 1});
  const auto too_fine = steps_to_convergence(exactly(1e-6), {.epsilon = 0.001, .unit_steps = 1});

  ASSERT_TRUE(found);
  const double k = found->value.p50;
  EXPECT_GT(k, curve.steepest());
  EXPECT_NEAR(curve.at(k) - curve.at(k + 1), 0.001, 1e-6);
  ASSERT_FALSE(too_fine);
  EXPECT_EQ(too_fine.error().code, ErrorCode::kConflict);
}

TEST(Isotonic, PoolsNeighboursThatRise) {
  std::vector<double> values{5, 3, 4, 2, 2.5, 1};

  isotonic_decreasing(values, std::vector<double>(6, 1.0));

  EXPECT_EQ(values, (std::vector<double>{5, 3.5, 3.5, 2.25, 2.25, 1}));
}

TEST(LossForMetric, FollowsTheMonotoneMapAndExtendsIt) {
  const std::vector<MetricPoint> seen{{1.0, 0.5}, {0.8, 0.6}, {0.6, 0.7}, {0.4, 0.8}};

  EXPECT_NEAR(*loss_for_metric(seen, 0.75, true), 0.5, 1e-12);
  EXPECT_NEAR(*loss_for_metric(seen, 0.9, true), 0.2, 1e-12);
  EXPECT_FALSE(loss_for_metric(std::vector<MetricPoint>{{1, 0.5}, {0.5, 0.6}}, 0.7, true));
  EXPECT_FALSE(
      loss_for_metric(std::vector<MetricPoint>{{1, 0.5}, {0.9, 0.5}, {0.8, 0.5}}, 0.7, true));
}

// --- ymir fit ---

std::string csv_of(const std::vector<CurvePoint>& points) {
  std::string csv = "step,lr,loss\n";
  for (const CurvePoint& p : points)
    csv += std::to_string(p.step) + ",0.1," + std::to_string(p.loss) + "\n";
  return csv;
}

TEST(FitCommand, AnswersTargetAndConvergence) {
  const RationalCurve truth{0, 0.02, 0.9, 0.12};

  const auto answer =
      answer_fit(csv_of(points_of(truth, 40, 5)), "c.csv", {.target = truth.at(400)});

  ASSERT_TRUE(answer);
  const Json json = *parse_json(answer->json);
  EXPECT_NEAR(json.at("steps_to_target").at("p50").get<double>(), 400, 8);
  EXPECT_EQ(json.at("unit_steps").get<double>(), 5);
  EXPECT_GT(json.at("steps_to_convergence").at("p50").get<double>(), 0);
  EXPECT_NE(answer->text.find("steps to loss"), std::string::npos);
}

TEST(FitCommand, NamesFileAndLineOfWhatIsWrong) {
  auto message = [](const char* csv) {
    const auto answer = answer_fit(csv, "c.csv", {});
    return answer ? std::string("no error") : answer.error().message;
  };

  EXPECT_EQ(message(""), "c.csv:1: empty: a header with step and loss is needed");
  EXPECT_EQ(message("a,b\n1,2\n"), "c.csv:1: no column named step");
  EXPECT_EQ(message("step,loss\n1,2\n\nx,3\n"), "c.csv:4: step is not a number >= 0: x");
  EXPECT_EQ(message("step,loss\n1,2\n2\n"), "c.csv:3: row has 1 columns");
  EXPECT_EQ(message("step,loss\n1,2\n2,abc\n"), "c.csv:3: loss is not a number: abc");
  EXPECT_EQ(message("step,loss\n1,2\n2,nan\n"), "c.csv: too few points for a curve: 1 distinct");
}

}  // namespace
}  // namespace ymir
