#include "ymir/tune/checkpoint/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "ymir/tune/checkpoint/safetensors.h"

namespace ymir {
namespace {

// Every value that 16 bits can hold, as the reader of files gives it.
std::vector<float> all_values(DType dtype) {
  std::vector<std::uint16_t> bits;
  for (std::uint32_t i = 0; i < 65536; ++i) bits.push_back(static_cast<std::uint16_t>(i));
  return *to_f32({dtype, {65536}, std::as_bytes(std::span(bits))});
}

TEST(Half, EveryValueComesBackToItsBits) {
  const std::vector<float> f16 = all_values(DType::kF16), bf16 = all_values(DType::kBF16);

  for (std::size_t i = 0; i < 65536; ++i) {
    if (!std::isnan(f16[i])) {
      EXPECT_EQ(f16_bits(f16[i]), i);
    }
    if (!std::isnan(bf16[i])) {
      EXPECT_EQ(bf16_bits(bf16[i]), i);
    }
  }
}

TEST(Half, BetweenTwoValuesTheNearestIsTakenAndOfEquallyNearTheEvenOne) {
  const std::vector<float> values = all_values(DType::kF16);

  for (std::size_t i = 0; i + 1 < 0x7c00; ++i) {           // positive and finite
    const float middle = (values[i] + values[i + 1]) / 2;  // exact in f32
    EXPECT_EQ(f16_bits(middle), i % 2 == 0 ? i : i + 1) << i;
    EXPECT_EQ(f16_bits(std::nextafter(middle, 0.0f)), i) << i;
    EXPECT_EQ(f16_bits(std::nextafter(middle, 1e9f)), i + 1) << i;
  }
}

TEST(Half, WhatIsTooLargeIsInfiniteAndNaNStaysNaN) {
  EXPECT_EQ(f16_bits(65520.0f), 0x7c00);
  EXPECT_EQ(f16_bits(-1e30f), 0xfc00);
  EXPECT_EQ(f16_bits(std::numeric_limits<float>::quiet_NaN()) & 0x7e00, 0x7e00);
  EXPECT_EQ(bf16_bits(std::numeric_limits<float>::quiet_NaN()), 0x7fc0);
  EXPECT_EQ(bf16_bits(std::numeric_limits<float>::infinity()), 0x7f80);
}

}  // namespace
}  // namespace ymir
