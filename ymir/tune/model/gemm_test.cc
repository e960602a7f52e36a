#include "ymir/tune/model/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "ymir/base/rng.h"
#include "ymir/tune/checkpoint/half.h"

namespace ymir::kernels {
namespace {

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& x : out) x = static_cast<float>(rng.uniform() - 0.5);
  return out;
}

std::vector<float> packed(Strided b, std::int64_t k, std::int64_t n) {
  std::vector<float> out(static_cast<std::size_t>(packed_size(k, n)));
  pack(b, k, n, 0, (n + kPanel - 1) / kPanel, out.data());
  return out;
}

// The definition, in f64.
double element(Strided a, Strided b, std::int64_t k, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t t = 0; t < k; ++t)
    sum += static_cast<double>(a.data[i * a.row + t * a.column]) * b.data[t * b.row + j * b.column];
  return sum;
}

TEST(Gemm, ProductsOfEverySizeAndOrientationAreTheSums) {
  if (!has_gemm()) GTEST_SKIP() << "this CPU has no AVX-512";
  for (const std::int64_t m : {1, 5, 12, 31}) {
    for (const std::int64_t n : {1, 16, 33, 100}) {
      for (const bool turned : {false, true}) {
        const std::int64_t k = 37;
        const auto a = numbers(m * k, 1), b = numbers(k * n, 2), before = numbers(m * n, 3);
        const Strided va = turned ? Strided{a.data(), 1, m} : Strided{a.data(), k, 1};
        const Strided vb = turned ? Strided{b.data(), 1, k} : Strided{b.data(), n, 1};
        const auto panels = packed(vb, k, n);
        auto c = before;

        multiply({m, n, k, 0.5f, true}, va, {panels.data(), kPanel * k, kPanel}, c.data(), n);

        for (std::int64_t i = 0; i < m * n; ++i)
          ASSERT_NEAR(c[static_cast<std::size_t>(i)],
                      before[static_cast<std::size_t>(i)] + 0.5 * element(va, vb, k, i / n, i % n),
                      1e-5)
              << m << " x " << n << (turned ? " turned" : "") << " at " << i;
      }
    }
  }
}

TEST(Gemm, TheBiasIsAddedToEveryLineOnce) {
  if (!has_gemm()) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::int64_t m = 11, n = 71, k = 5;
  const auto a = numbers(m * k, 1), b = numbers(k * n, 2), bias = numbers(n, 3);
  const auto panels = packed({b.data(), n, 1}, k, n);
  std::vector<float> plain(static_cast<std::size_t>(m * n)), with_bias = plain;

  multiply({m, n, k}, {a.data(), k, 1}, {panels.data(), kPanel * k, kPanel}, plain.data(), n);
  multiply({m, n, k, 1, false, bias.data()}, {a.data(), k, 1}, {panels.data(), kPanel * k, kPanel},
           with_bias.data(), n);

  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_EQ(with_bias[i], plain[i] + bias[i % static_cast<std::size_t>(n)]) << i;
}

TEST(Gemm, AMatrixReadInPlaceGivesTheBitsOfItsPackedForm) {
  if (!has_gemm()) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::int64_t m = 14, n = 64, k = 20, line = 100;
  const auto a = numbers(m * k, 1), b = numbers(k * line, 2);
  const auto panels = packed({b.data(), line, 1}, k, n);
  std::vector<float> in_place(static_cast<std::size_t>(m * n)), from_packed = in_place;

  multiply({m, n, k}, {a.data(), k, 1}, {b.data(), kPanel, line}, in_place.data(), n);
  multiply({m, n, k}, {a.data(), k, 1}, {panels.data(), kPanel * k, kPanel}, from_packed.data(), n);

  EXPECT_EQ(in_place, from_packed);
}

TEST(Gemm, ARowsBitsDoNotDependOnTheRowsBesideIt) {
  if (!has_gemm()) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::int64_t m = 29, n = 64, k = 77;
  const auto a = numbers(m * k, 1), b = numbers(k * n, 2);
  const auto panels = packed({b.data(), n, 1}, k, n);
  const Panels view{panels.data(), kPanel * k, kPanel};
  std::vector<float> together(static_cast<std::size_t>(m * n));

  multiply({m, n, k}, {a.data(), k, 1}, view, together.data(), n);

  for (std::int64_t row = 0; row < m; ++row) {
    std::vector<float> alone(static_cast<std::size_t>(n));
    multiply({1, n, k}, {a.data() + row * k, k, 1}, view, alone.data(), n);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * n)) << row;
  }
}

TEST(Gemm, PackedBitsOfBf16AreItsValues) {
  const std::vector<std::uint16_t> bits = {0x3f80, 0xc000, 0x4040, 0x0000};  // 1 -2 3 0
  std::vector<float> to(static_cast<std::size_t>(packed_size(2, 2)), 7.0f);

  pack(Strided16{bits.data(), 2, 1}, 2, 2, 0, 1, to.data());

  EXPECT_EQ(to[0], 1.0f);
  EXPECT_EQ(to[1], -2.0f);
  EXPECT_EQ(to[2], 0.0f);  // filled up
  EXPECT_EQ(to[kPanel], 3.0f);
  EXPECT_EQ(to[kPanel + 1], 0.0f);
}

TEST(Gemm, ASumThatGoesOnHasTheBitsOfOneThatWasNotCut) {
  if (!has_gemm()) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::int64_t m = 13, n = 71, k = 100, cut = 37;
  const auto a = numbers(m * k, 1), b = numbers(k * n, 2), bias = numbers(n, 3);
  const auto whole = packed({b.data(), n, 1}, k, n), upper = packed({b.data(), n, 1}, cut, n),
             lower = packed({b.data() + cut * n, n, 1}, k - cut, n);
  std::vector<float> at_once(static_cast<std::size_t>(m * n)), in_two = at_once;

  multiply({m, n, k, 1, false, bias.data()}, {a.data(), k, 1}, {whole.data(), kPanel * k, kPanel},
           at_once.data(), n);
  multiply({m, n, cut}, {a.data(), k, 1}, {upper.data(), kPanel * cut, kPanel}, in_two.data(), n);
  multiply({m, n, k - cut, 1, false, bias.data(), true}, {a.data() + cut, k, 1},
           {lower.data(), kPanel * (k - cut), kPanel}, in_two.data(), n);

  EXPECT_EQ(in_two, at_once);
}

TEST(Gemm, EveryElementIsPackedWhateverTheStrides) {
  for (const std::int64_t n : {1, 16, 50, 96}) {
    for (const std::int64_t k : {1, 16, 37, 64}) {
      const auto b = numbers(k * n, 4);
      for (const bool turned : {false, true}) {
        const Strided view = turned ? Strided{b.data(), 1, k} : Strided{b.data(), n, 1};

        const auto panels = packed(view, k, n);

        for (std::int64_t i = 0; i < k; ++i)
          for (std::int64_t j = 0; j < packed_size(1, n); ++j)
            ASSERT_EQ(
                panels[static_cast<std::size_t>(j / kPanel * kPanel * k + i * kPanel + j % kPanel)],
                j < n ? view.data[i * view.row + j * view.column] : 0.0f)
                << k << " x " << n << (turned ? " turned" : "") << " at " << i << ", " << j;
      }
    }
  }
}

// Vectors take all lanes but the last few columns and lines.
TEST(Gemm, EveryValueInHalfPrecisionIsPackedAsItIs) {
  const std::int64_t k = 255, n = 257;  // all bits once, but for the last
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(k * n));
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  for (const bool f16 : {false, true}) {
    for (const bool turned : {false, true}) {
      std::vector<float> to(static_cast<std::size_t>(packed_size(k, n)));

      pack(turned ? Strided16{bits.data(), 1, k, f16} : Strided16{bits.data(), n, 1, f16}, k, n, 0,
           packed_size(1, n) / kPanel, to.data());

      for (std::int64_t i = 0; i < k; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const std::uint16_t from = bits[static_cast<std::size_t>(turned ? i + j * k : i * n + j)];
          const float expected = f16 ? f16_value(from) : bf16_value(from);
          const float got =
              to[static_cast<std::size_t>(j / kPanel * kPanel * k + i * kPanel + j % kPanel)];
          ASSERT_TRUE(std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected) ||
                      (std::isnan(got) && std::isnan(expected)))
              << std::hex << from << (f16 ? " as f16" : " as bf16");
        }
    }
  }
}

}  // namespace
}  // namespace ymir::kernels
