#include "ymir/cluster/slots.h"

#include <gtest/gtest.h>

#include <set>

namespace ymir {
namespace {

TEST(Slots, DefaultNumberLeavesSmallMachinesTwoSlots) {
  EXPECT_EQ(default_slots(1), 1);
  EXPECT_EQ(default_slots(2), 2);
  EXPECT_EQ(default_slots(3), 2);
  EXPECT_EQ(default_slots(16), 8);
}

TEST(Slots, AreDisjointAndOfOneSize) {
  const std::vector<int> cores{0, 4, 1, 5, 2, 6, 3};

  const auto slots = make_slots(cores, 3);

  ASSERT_TRUE(slots);
  ASSERT_EQ(slots->size(), 3u);
  EXPECT_EQ((*slots)[0].cores, (std::vector<int>{0, 4}));
  EXPECT_EQ((*slots)[1].cores, (std::vector<int>{1, 5}));
  EXPECT_EQ((*slots)[2].cores, (std::vector<int>{2, 6}));
}

TEST(Slots, ShareCoresWhenThereAreMoreSlotsThanCores) {
  const auto slots = make_slots({0, 1}, 3);

  ASSERT_TRUE(slots);
  EXPECT_EQ((*slots)[0].cores, std::vector<int>{0});
  EXPECT_EQ((*slots)[1].cores, std::vector<int>{1});
  EXPECT_EQ((*slots)[2].cores, std::vector<int>{0});
}

TEST(Slots, RefuseASenselessNumber) {
  EXPECT_FALSE(make_slots({0}, -1));
  EXPECT_FALSE(make_slots({0}, 5'000));
}

TEST(Slots, OfThisMachineAreRealCores) {
  const auto cores = usable_cores();

  EXPECT_FALSE(cores.empty());
  EXPECT_EQ(std::set<int>(cores.begin(), cores.end()).size(), cores.size());
}

}  // namespace
}  // namespace ymir
