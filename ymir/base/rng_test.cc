#include "ymir/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace ymir {
namespace {

// Known answers of the Random123 distribution (kat_vectors, philox4x32-10).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(0xffffffffffffffffull, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, SameSeedSameNumbersOtherSeedOtherNumbers) {
  Rng a(7), b(7), c(8);

  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto x = a.next64();
    EXPECT_EQ(x, b.next64());
    differs |= x != c.next64();
  }

  EXPECT_TRUE(differs);
}

TEST(Rng, BelowReachesEveryValueAndNoOther) {
  Rng rng(1);

  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(rng.below(7));

  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Rng, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(3);

  double sum = 0, squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
  }

  EXPECT_NEAR(sum / kDraws, 0, 0.03);
  EXPECT_NEAR(squares / kDraws, 1, 0.05);
}

}  // namespace
}  // namespace ymir
