#include "ymir/sim/profiles/scattered.h"

#include <gtest/gtest.h>

#include "ymir/base/rng.h"

namespace ymir {
namespace {

ScatteredTable::Value plane(const ScatteredTable::Point& p) {
  return {1 + 2 * p[0] - p[1] + 0.5 * p[2], 3 - p[0] + p[2]};
}

TEST(Scattered, GivesALinearFunctionBackWherePointsAreScattered) {
  Rng rng(7);
  ScatteredTable table;
  for (int i = 0; i < 200; ++i) {
    const ScatteredTable::Point p = {rng.uniform(1, 16), rng.uniform(1, 64), rng.uniform(1, 3e4)};
    table.add(p, plane(p));
  }

  for (int i = 0; i < 50; ++i) {
    const ScatteredTable::Point p = {rng.uniform(6, 10), rng.uniform(24, 40),
                                     rng.uniform(1e4, 2e4)};
    const auto answer = table.at(p);

    ASSERT_TRUE(answer);
    EXPECT_NEAR(answer->value[0], plane(p)[0], 1e-8 * 3e4);
    EXPECT_NEAR(answer->value[1], plane(p)[1], 1e-8 * 3e4);
    EXPECT_TRUE(answer->unique);
  }
}

TEST(Scattered, GivesAMeasuredPointItsOwnValueAlsoOnAGrid) {
  ScatteredTable table;
  for (const double x : {0.0, 1.0, 2.0})
    for (const double y : {0.0, 1.0, 2.0})
      for (const double z : {0.0, 1.0, 2.0}) table.add({x, y, z}, {x * y * z, x + 10 * y});

  const auto inside = table.at({1, 1, 1}), corner = table.at({2, 2, 2});

  ASSERT_TRUE(inside && corner);
  EXPECT_DOUBLE_EQ(inside->value[0], 1);
  EXPECT_DOUBLE_EQ(corner->value[0], 8);
  EXPECT_TRUE(inside->unique && corner->unique);
}

TEST(Scattered, SaysWhenTriangulationsOfAGridDiffer) {
  ScatteredTable table;  // a unit cube whose eight corners lie on one sphere
  for (const double x : {0.0, 1.0})
    for (const double y : {0.0, 1.0})
      for (const double z : {0.0, 1.0}) table.add({x, y, z}, {x * y, x});

  const auto answer = table.at({0.5, 0.5, 0});

  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->unique);
  EXPECT_DOUBLE_EQ(answer->value[0], 0.25);  // between 0 (one diagonal) and 0.5 (the other)
  EXPECT_DOUBLE_EQ(answer->value[1], 0.5);
}

TEST(Scattered, DoesNotExtrapolate) {
  ScatteredTable table;
  for (const double x : {0.0, 1.0})
    for (const double y : {0.0, 1.0})
      for (const double z : {0.0, 1.0}) table.add({x, y, z}, {x, y});

  EXPECT_FALSE(table.at({1.01, 0.5, 0.5}));
  EXPECT_TRUE(table.at({1, 0.5, 0.5}));
  EXPECT_FALSE(ScatteredTable{}.at({0, 0, 0}));
}

TEST(Scattered, KeepsTheFirstOfTwoValuesOfAPoint) {
  ScatteredTable table;
  table.add({1, 1, 1}, {5, 6});
  table.add({1, 1, 1}, {7, 8});

  EXPECT_EQ(table.size(), 1U);
}

}  // namespace
}  // namespace ymir
