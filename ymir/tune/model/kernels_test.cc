#include "ymir/tune/model/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "ymir/base/philox.h"
#include "ymir/base/rng.h"

namespace ymir::kernels {
namespace {

// Each of the builds that this CPU runs.
class Kernels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!take_instruction_set(GetParam())) GTEST_SKIP() << "this CPU has no " << GetParam();
  }
  void TearDown() override { take_instruction_set(own_); }

 private:
  const char* own_ = instruction_set();
};
INSTANTIATE_TEST_SUITE_P(Builds, Kernels, ::testing::Values("avx512", "avx2", "base"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(Kernels, GeluAndItsDerivativeAreTheExactForm) {
  std::vector<float> z, bias;
  for (int i = 0; i < 2003; ++i) z.push_back(static_cast<float>(i - 1001) * 0.007f);
  bias.assign(z.size(), 0.0f);
  std::vector<float> h(z.size()), slope(z.size());

  activation_row(Activation::kGelu, z.data(), bias.data(), static_cast<std::int64_t>(z.size()),
                 h.data(), slope.data());

  for (std::size_t i = 0; i < z.size(); ++i) {
    const double x = z[i], cumulative = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    EXPECT_NEAR(h[i], x * cumulative, 1e-6) << x;
    EXPECT_NEAR(slope[i], cumulative + x * density, 1e-6) << x;
  }
}

TEST_P(Kernels, MaskBitsAreThoseOfPhilox) {
  const DropoutKey key{0x123456789abcdefull, 7, 3, 0x2000405};
  const Dropout dropout = make_dropout(0.25);
  std::vector<std::uint8_t> keep(300);

  dropout_mask(key, dropout, 300, keep.data());

  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::uint32_t group = i / 128, word = i % 128 / 32, half = i % 32 / 16, lane = i % 16;
    const PhiloxBlock block = philox(key.seed, {group * 16 + lane, key.row, key.epoch, key.site});
    const std::uint32_t bits = half == 0 ? block[word] & 0xffff : block[word] >> 16;
    EXPECT_EQ(keep[i], bits >= dropout.threshold) << i;
  }
}

TEST_P(Kernels, ShorterMaskIsAPrefixOfTheLonger) {
  const DropoutKey key{9, 1, 1, 1};
  const Dropout dropout = make_dropout(0.5);
  std::vector<std::uint8_t> whole(1000), part(333);

  dropout_mask(key, dropout, 1000, whole.data());
  dropout_mask(key, dropout, 333, part.data());

  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
}

TEST_P(Kernels, DropoutKeepsTheMean) {
  const Dropout dropout = make_dropout(0.1);
  constexpr std::int64_t kCount = 200000;
  std::vector<std::uint8_t> keep(kCount);

  dropout_mask({4, 0, 0, 0}, dropout, kCount, keep.data());

  double sum = 0;
  for (const std::uint8_t k : keep) sum += k * static_cast<double>(dropout.scale);
  EXPECT_NEAR(sum / kCount, 1.0, 0.004);
}

TEST_P(Kernels, SoftmaxAndItsBackwardMatchDoubleArithmetic) {
  Rng rng(2);
  constexpr int kWidth = 37;
  std::vector<float> x(kWidth), g(kWidth);
  std::vector<double> p(kWidth), dp(kWidth);
  double sum = 0, dot = 0;
  for (int i = 0; i < kWidth; ++i) {
    x[static_cast<std::size_t>(i)] = static_cast<float>(rng.normal() * 4);
    dp[static_cast<std::size_t>(i)] = rng.normal();
    g[static_cast<std::size_t>(i)] = static_cast<float>(dp[static_cast<std::size_t>(i)]);
    p[static_cast<std::size_t>(i)] = std::exp(0.3 * x[static_cast<std::size_t>(i)]);
    sum += p[static_cast<std::size_t>(i)];
  }
  for (double& value : p) value /= sum;

  softmax_row(x.data(), kWidth, 0.3f);
  std::vector<float> signed_p = x;
  signed_p[5] = -signed_p[5];  // dropped
  softmax_backward_row(signed_p.data(), 1.25f, 0.3f, kWidth, g.data());

  dp[5] = 0;
  for (std::size_t i = 0; i < kWidth; ++i) dot += p[i] * dp[i] * 1.25;
  for (std::size_t i = 0; i < kWidth; ++i) {
    EXPECT_NEAR(x[i], p[i], 1e-6);
    EXPECT_NEAR(g[i], 0.3 * p[i] * (dp[i] * 1.25 - dot), 2e-6);
  }
}

TEST_P(Kernels, NormAndItsBackwardHandleWidthsThatAreNoMultipleOfTheVector) {
  for (const std::int64_t width : {5, 16, 30, 312}) {
    Rng rng(static_cast<std::uint64_t>(width));
    const auto n = static_cast<std::size_t>(width);
    std::vector<float> x(n), gain(n), bias(n, 0.5f), y(n), normalised(n), dy(n), dx(n);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<float>(rng.normal() + 3);
      gain[i] = static_cast<float>(rng.normal() + 2);
      dy[i] = static_cast<float>(rng.normal());
    }
    double mean = 0, variance = 0;
    for (const float value : x) mean += value;
    mean /= static_cast<double>(width);
    for (const float value : x) variance += (value - mean) * (value - mean);
    variance /= static_cast<double>(width);
    const double deviation = std::sqrt(variance + 1e-5);
    double mean_g = 0, mean_gh = 0;
    for (std::size_t i = 0; i < n; ++i) {
      mean_g += dy[i] * gain[i] / static_cast<double>(width);
      mean_gh += dy[i] * gain[i] * (x[i] - mean) / deviation / static_cast<double>(width);
    }
    const Norm norm{gain.data(), bias.data(), 1e-5f, width};
    float inverse = 0;

    norm_row(norm, x.data(), y.data(), normalised.data(), &inverse);
    norm_backward_row(norm, dy.data(), normalised.data(), inverse, dx.data());

    for (std::size_t i = 0; i < n; ++i) {
      const double h = (x[i] - mean) / deviation;
      EXPECT_NEAR(y[i], h * gain[i] + 0.5, 2e-5);
      EXPECT_NEAR(dx[i], (dy[i] * gain[i] - mean_g - h * mean_gh) / deviation, 2e-5);
    }
  }
}

}  // namespace
}  // namespace ymir::kernels
