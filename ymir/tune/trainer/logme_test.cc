#include "ymir/tune/trainer/logme.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/rng.h"
#include "ymir/base/symmetric.h"

namespace ymir {
namespace {

struct Sample {
  std::vector<float> values{};
  std::vector<std::int32_t> labels{};
  std::vector<float> targets{};
  std::int64_t rows = 0, columns = 0;
  Features view() const { return {values, rows, columns}; }
};

// Features of noise in which the first column carries the label, `signal` strong.
Sample labelled(std::int64_t rows, std::int64_t columns, double signal, std::uint64_t seed) {
  Rng rng(seed);
  Sample s{{}, {}, {}, rows, columns};
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto label = static_cast<std::int32_t>(r % 2);
    s.labels.push_back(label);
    s.targets.push_back(static_cast<float>(label + 0.1 * rng.normal()));
    for (std::int64_t c = 0; c < columns; ++c) {
      s.values.push_back(static_cast<float>(rng.normal() + (c == 0 ? signal * label : 0)));
    }
  }
  return s;
}

// ln N(y; 0, I/beta + F F^T/alpha) / N by a Cholesky factor of the covariance: brute force.
double marginal(const Sample& s, const std::vector<double>& y, double alpha, double beta) {
  const auto n = static_cast<std::size_t>(s.rows), d = static_cast<std::size_t>(s.columns);
  std::vector<double> covariance(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t c = 0; c < d; ++c) {
        covariance[i * n + j] += static_cast<double>(s.values[i * d + c]) *
                                 static_cast<double>(s.values[j * d + c]) / alpha;
      }
    }
    covariance[i * n + i] += 1 / beta;
  }
  const auto l = cholesky(covariance, static_cast<int>(n));
  std::vector<double> x = y;
  cholesky_solve(*l, static_cast<int>(n), x);
  double sum = static_cast<double>(n) * std::log(2 * std::numbers::pi);
  for (std::size_t i = 0; i < n; ++i) sum += y[i] * x[i] + 2 * std::log((*l)[i * n + i]);
  return -sum / 2 / static_cast<double>(n);
}

// Best of a fine grid over (alpha, beta), refined around its best point.
double maximised(const Sample& s, const std::vector<double>& y) {
  double best = -std::numeric_limits<double>::infinity(), a = 0, b = 0;
  for (double step = 1; step > 1e-3; step /= 3) {
    for (bool moved = true; moved;) {
      moved = false;
      const double centre_a = a, centre_b = b;
      for (int i = -3; i <= 3; ++i) {
        for (int j = -3; j <= 3; ++j) {
          const double la = centre_a + i * step, lb = centre_b + j * step;
          const double value = marginal(s, y, std::exp(la), std::exp(lb));
          if (value > best + 1e-12) {
            best = value;
            a = la;
            b = lb;
            moved = true;
          }
        }
      }
    }
  }
  return best;
}

TEST(LogMe, EqualsTheMaximisedMarginalLikelihood) {
  for (const auto& [rows, columns] : {std::pair{20, 4}, std::pair{8, 12}}) {
    const Sample s = labelled(rows, columns, 2, 7);
    std::vector<double> zero, one;
    for (const std::int32_t label : s.labels) {
      zero.push_back(label == 0);
      one.push_back(label == 1);
    }

    const auto found = logme(s.view(), s.labels, 2);

    ASSERT_TRUE(found);
    EXPECT_NEAR(*found, (maximised(s, zero) + maximised(s, one)) / 2, 1e-6) << rows;
  }
}

TEST(LogMe, EqualsTheReferenceProgram) {
  const auto text = read_file(std::string(YMIR_SOURCE_DIR) + "/tests/reference/probe_values.json");
  ASSERT_TRUE(text);
  const auto json = parse_json(*text);
  ASSERT_TRUE(json);
  ASSERT_EQ(json->at("cases").size(), 3u);

  for (const Json& c : json->at("cases")) {
    const auto values = c.at("features").get<std::vector<float>>();
    const Features features{values, c.at("rows").get<int>(), c.at("columns").get<int>()};
    const auto labels = c.at("labels").get<std::vector<std::int32_t>>();
    const auto targets = c.at("targets").get<std::vector<float>>();

    const auto classes = logme(features, labels, c.at("classes").get<int>());
    const auto regression = logme(features, targets);

    ASSERT_TRUE(classes && regression);
    EXPECT_NEAR(*classes, c.at("evidence").get<double>(), 1e-6) << c.at("name");
    EXPECT_NEAR(*regression, c.at("regression_evidence").get<double>(), 1e-6) << c.at("name");
  }
}

TEST(LogMe, IsLargerForFeaturesThatSeparateTheClassesBetter) {
  const Sample none = labelled(60, 10, 0, 3), weak = labelled(60, 10, 1, 3),
               strong = labelled(60, 10, 5, 3);

  const double a = *logme(none.view(), none.labels, 2), b = *logme(weak.view(), weak.labels, 2),
               c = *logme(strong.view(), strong.labels, 2);

  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
}

TEST(LogMe, IgnoresClassesThatDoNotOccurAndTheScaleOfFeatures) {
  const Sample s = labelled(40, 6, 2, 5);
  Sample scaled = s;
  for (float& value : scaled.values) value *= 16;

  const double base = *logme(s.view(), s.labels, 2);

  EXPECT_DOUBLE_EQ(*logme(s.view(), s.labels, 7), base);
  EXPECT_NEAR(*logme(scaled.view(), s.labels, 2), base, 1e-3);
}

TEST(LogMe, RegressionDoesNotDependOnTheUnitOfTheTarget) {
  Sample s = labelled(40, 6, 2, 5);
  const double base = *logme(s.view(), s.targets);

  for (float& target : s.targets) target = 100 * target + 7;

  EXPECT_NEAR(*logme(s.view(), s.targets), base, 1e-4);
}

TEST(LogMe, AnswersForFeaturesThatSayNothing) {
  Sample s = labelled(20, 3, 0, 1);
  s.values.assign(s.values.size(), 0.0f);

  const auto zero = logme(s.view(), s.labels, 2);

  ASSERT_TRUE(zero);
  EXPECT_TRUE(std::isfinite(*zero));
}

TEST(LogMe, RefusesWhatIsNoTask) {
  Sample s = labelled(20, 3, 1, 1);
  const std::vector<std::int32_t> one_class(20, 1);
  const std::vector<float> constant(20, 3.0f);
  const std::span<const std::int32_t> short_labels(s.labels.data(), 19);

  EXPECT_FALSE(logme(s.view(), one_class, 2));
  EXPECT_FALSE(logme(s.view(), s.labels, 1));
  EXPECT_FALSE(logme(s.view(), short_labels, 2));
  EXPECT_FALSE(logme(s.view(), constant));
  EXPECT_FALSE(logme(Features{s.values, 20, 4}, s.labels, 2));
  s.values[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(logme(s.view(), s.labels, 2));
}

}  // namespace
}  // namespace ymir
