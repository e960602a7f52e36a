#include "ymir/tune/trainer/head_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/rng.h"

namespace ymir {
namespace {

// Four classes around four points, with columns of very different size and a common offset.
struct Blobs {
  std::vector<float> values{};
  std::vector<std::int32_t> labels{};
  static constexpr std::int64_t kRows = 120, kColumns = 24;
  Features view() const { return {values, kRows, kColumns}; }
};
Blobs blobs(double spread) {
  Rng rng(9);
  Blobs b;
  for (std::int64_t r = 0; r < Blobs::kRows; ++r) {
    const auto label = static_cast<std::int32_t>(r % 4);
    b.labels.push_back(label);
    for (std::int64_t c = 0; c < Blobs::kColumns; ++c) {
      const double scale = std::pow(10, -static_cast<double>(c % 4));
      const double centre = c % 4 == label ? 3 : 0;
      b.values.push_back(static_cast<float>(scale * (centre + spread * rng.normal() + 10)));
    }
  }
  return b;
}

double accuracy(const HeadFit& fit, const Blobs& b) {
  const std::vector<float> out = head_outputs(fit, b.view());
  int right = 0;
  for (std::size_t r = 0; r < b.labels.size(); ++r) {
    const auto row = out.begin() + static_cast<std::ptrdiff_t>(r) * fit.outputs;
    right += std::max_element(row, row + fit.outputs) - row == b.labels[r];
  }
  return static_cast<double>(right) / static_cast<double>(b.labels.size());
}

TEST(HeadFit, EqualsTheReferenceProgram) {
  const auto text = read_file(std::string(YMIR_SOURCE_DIR) + "/tests/reference/probe_values.json");
  ASSERT_TRUE(text);
  const auto json = parse_json(*text);
  ASSERT_TRUE(json);

  for (const Json& c : json->at("cases")) {
    const auto values = c.at("features").get<std::vector<float>>();
    const Features features{values, c.at("rows").get<int>(), c.at("columns").get<int>()};
    const auto labels = c.at("labels").get<std::vector<std::int32_t>>();
    const auto targets = c.at("targets").get<std::vector<float>>();
    HeadFitOptions options;
    options.l2 = c.at("l2").get<double>();
    options.tolerance = 1e-8;
    options.max_iterations = 1000;

    const auto logistic = fit_classifier_head(features, labels, c.at("classes"), options);
    const auto ridge = fit_regression_head(features, targets, options);

    ASSERT_TRUE(logistic) << logistic.error().message;
    ASSERT_TRUE(ridge) << ridge.error().message;
    const auto weight = c.at("logistic_weight").get<std::vector<double>>();
    ASSERT_EQ(logistic->weight.size(), weight.size());
    for (std::size_t i = 0; i < weight.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(logistic->weight[i]), weight[i], 2e-5) << c.at("name");
    }
    const auto bias = c.at("logistic_bias").get<std::vector<double>>();
    for (std::size_t i = 0; i < bias.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(logistic->bias[i]), bias[i], 2e-5) << c.at("name");
    }
    const auto ridge_weight = c.at("ridge_weight").get<std::vector<double>>();
    for (std::size_t i = 0; i < ridge_weight.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(ridge->weight[i]), ridge_weight[i], 2e-5) << c.at("name");
    }
    EXPECT_NEAR(static_cast<double>(ridge->bias[0]), c.at("ridge_bias").get<double>(), 2e-5);
  }
}

TEST(HeadFit, SeparatesWhatIsSeparableInFewIterationsThoughScalesDiffer) {
  const Blobs b = blobs(0.3);

  const auto fit = fit_classifier_head(b.view(), b.labels, 4, {.l2 = 1e-4});

  ASSERT_TRUE(fit) << fit.error().message;
  EXPECT_EQ(accuracy(*fit, b), 1.0);
  EXPECT_LT(fit->iterations, 100);
  EXPECT_LE(fit->largest_gradient, 1e-4);
  EXPECT_NEAR(static_cast<double>(std::accumulate(fit->bias.begin(), fit->bias.end(), 0.0f)), 0,
              1e-4);
}

TEST(HeadFit, RefusesAHeadThatHasNotConverged) {
  const Blobs b = blobs(2);

  const auto fit = fit_classifier_head(b.view(), b.labels, 4, {.l2 = 1e-6, .max_iterations = 1});

  ASSERT_FALSE(fit);
  EXPECT_EQ(fit.error().code, ErrorCode::kExhausted);
}

TEST(HeadFit, GradientOfTheFoundHeadIsZeroByFiniteDifferences) {
  const Blobs b = blobs(2);
  const HeadFitOptions options{.l2 = 1e-2};
  const auto fit = fit_classifier_head(b.view(), b.labels, 4, options);
  ASSERT_TRUE(fit);
  auto objective = [&](const HeadFit& head) {
    const std::vector<float> out = head_outputs(head, b.view());
    double sum = 0, squares = 0;
    for (std::size_t r = 0; r < b.labels.size(); ++r) {
      double total = 0;
      for (std::size_t k = 0; k < 4; ++k) total += std::exp(static_cast<double>(out[r * 4 + k]));
      const auto own = static_cast<std::size_t>(b.labels[r]);
      sum += std::log(total) - static_cast<double>(out[r * 4 + own]);
    }
    for (const float w : head.weight) squares += static_cast<double>(w) * static_cast<double>(w);
    return sum / static_cast<double>(b.labels.size()) + options.l2 / 2 * squares;
  };

  const double base = objective(*fit);

  for (std::size_t i = 0; i < fit->weight.size(); i += 7) {
    for (const float change : {0.05f, -0.05f}) {
      HeadFit moved = *fit;
      moved.weight[i] += change;
      EXPECT_GT(objective(moved), base);
    }
  }
}

TEST(HeadFit, RefusesBadOptionsAndBadLabels) {
  const Blobs b = blobs(1);
  const std::vector<std::int32_t> same(b.labels.size(), 2);

  EXPECT_FALSE(fit_classifier_head(b.view(), b.labels, 4, {.l2 = 0}));
  EXPECT_FALSE(fit_classifier_head(b.view(), b.labels, 4, {.max_iterations = 0}));
  EXPECT_FALSE(fit_classifier_head(b.view(), b.labels, 3, {}));
  EXPECT_FALSE(fit_classifier_head(b.view(), same, 4, {}));
  EXPECT_FALSE(fit_regression_head(b.view(), std::vector<float>(3, 1.0f), {}));
}

}  // namespace
}  // namespace ymir
