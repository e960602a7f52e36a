#include "ymir/base/symmetric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ymir/base/rng.h"

namespace ymir {
namespace {

// A random symmetric matrix of the given rank, B B^T.
std::vector<double> random_gram(int n, int rank, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> b(static_cast<std::size_t>(n * rank)), a(static_cast<std::size_t>(n * n));
  for (double& x : b) x = rng.normal();
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < rank; ++k) {
        a[static_cast<std::size_t>(i * n + j)] +=
            b[static_cast<std::size_t>(i * rank + k)] * b[static_cast<std::size_t>(j * rank + k)];
      }
    }
  }
  return a;
}

std::vector<double> times(const std::vector<double>& a, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += a[i * x.size() + j] * x[j];
  }
  return y;
}

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

TEST(Cholesky, SolvesTheSystem) {
  const int n = 9;
  std::vector<double> a = random_gram(n, n, 1);
  std::vector<double> x(9, 0.0);
  for (std::size_t i = 0; i < 9; ++i) x[i] = static_cast<double>(i) - 3.5;
  std::vector<double> b = times(a, x);

  const auto factor = cholesky(a, n);

  ASSERT_TRUE(factor.has_value());
  cholesky_solve(*factor, n, b);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(b[i], x[i], 1e-7);
}

TEST(Cholesky, RefusesAMatrixThatIsNotPositiveDefinite) {
  EXPECT_FALSE(cholesky(std::vector<double>{1, 2, 2, 1}, 2).has_value());
  EXPECT_FALSE(cholesky(std::vector<double>{0}, 1).has_value());
  EXPECT_FALSE(
      cholesky(std::vector<double>{std::numeric_limits<double>::quiet_NaN()}, 1).has_value());
}

TEST(SpectrumOf, TwoByTwoHasTheKnownEigenvalues) {
  const auto s = spectrum({2, 1, 1, 2}, 2, {{1, 1}, {1, -1}});

  ASSERT_TRUE(s.has_value());
  EXPECT_NEAR(s->values[0], 1, 1e-14);
  EXPECT_NEAR(s->values[1], 3, 1e-14);
  EXPECT_NEAR(std::abs(s->components[0][1]), std::sqrt(2.0), 1e-14);
  EXPECT_NEAR(std::abs(s->components[1][0]), std::sqrt(2.0), 1e-14);
}

// The moments y^T A^k y determine eigenvalues and squared components: sum_i value_i^k c_i^2.
TEST(SpectrumOf, ReproducesTheMomentsOfTheMatrixAlsoWhenRankDeficient) {
  for (const int rank : {40, 7, 1}) {
    const int n = 40;
    const std::vector<double> a = random_gram(n, rank, static_cast<std::uint64_t>(rank));
    Rng rng(5);
    std::vector<double> y(static_cast<std::size_t>(n));
    for (double& x : y) x = rng.normal();

    const auto s = spectrum(a, n, {y});

    ASSERT_TRUE(s.has_value());
    std::vector<double> power = y;
    for (int k = 0; k < 5; ++k) {
      double moment = 0;
      for (std::size_t i = 0; i < s->values.size(); ++i) {
        moment += std::pow(s->values[i], k) * s->components[0][i] * s->components[0][i];
      }
      EXPECT_NEAR(moment / dot(y, power), 1, 1e-10) << rank << ' ' << k;
      power = times(a, power);
    }
    for (int i = 0; i + rank < n; ++i) {
      EXPECT_NEAR(s->values[static_cast<std::size_t>(i)], 0, 1e-10 * s->values.back());
    }
  }
}

TEST(SpectrumOf, HandlesEmptyDiagonalAndSingle) {
  EXPECT_TRUE(spectrum({}, 0, {})->values.empty());
  EXPECT_EQ(spectrum({4}, 1, {})->values, std::vector<double>{4});
  EXPECT_EQ(spectrum({3, 0, 0, 0, 1, 0, 0, 0, 2}, 3, {})->values, (std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace ymir
