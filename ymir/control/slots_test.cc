#include "ymir/control/slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ymir {
namespace {

using testing::ElementsAre;

Snapshot three_nodes_of_four(IdSet<int> taken) {
  Snapshot now;
  now.places[PlaceId{1}] = {
      .place = PlaceId{1}, .num_slots = 12, .node_slots = 4, .taken = std::move(taken)};
  return now;
}

std::vector<int> slots_for(const Snapshot& now, int gpus, bool spread = false) {
  const auto found = find_slots(now, JobView{}, gpus, spread);
  return found ? found->second : std::vector<int>{};
}

TEST(FindSlots, TakesTheFullestNodeThatHoldsAll) {
  const Snapshot now = three_nodes_of_four({0, 4, 5});

  EXPECT_THAT(slots_for(now, 2), ElementsAre(6, 7));
  EXPECT_THAT(slots_for(now, 3), ElementsAre(1, 2, 3));
}

TEST(FindSlots, TakesWholeNodesAndTheFullestForTheRest) {
  const Snapshot now = three_nodes_of_four({4, 5});

  EXPECT_THAT(slots_for(now, 6), ElementsAre(0, 1, 2, 3, 6, 7));
}

TEST(FindSlots, SpansNodesWhenNoneHoldsAll) {
  const Snapshot now = three_nodes_of_four({0, 1, 2, 4, 5, 8, 9, 10, 11});

  EXPECT_THAT(slots_for(now, 3), ElementsAre(3, 6, 7));
  EXPECT_THAT(slots_for(now, 4), ElementsAre());
}

TEST(FindSlots, SpreadsToTheEmptiestNodeWhenAsked) {
  const Snapshot now = three_nodes_of_four({0, 4, 5});

  EXPECT_THAT(slots_for(now, 2, true), ElementsAre(8, 9));
}

TEST(FindSlots, GoesBackToWhereTheJobRanBefore) {
  const Snapshot now = three_nodes_of_four({0});
  JobView job;
  job.last_place = PlaceId{1};
  job.last_slots = {10, 11};

  const auto found = find_slots(now, job, 2, false);

  ASSERT_TRUE(found);
  EXPECT_THAT(found->second, ElementsAre(10, 11));
}

TEST(FindSlots, PrefersTheFullestPlaceThatHoldsAllAndTheEmptiestWhenSpreading) {
  Snapshot now;
  now.places[PlaceId{1}] = {.place = PlaceId{1}, .num_slots = 4};
  now.places[PlaceId{2}] = {.place = PlaceId{2}, .num_slots = 4, .taken = {0}};

  const auto fewest = find_slots(now, JobView{}, 2, false);
  const auto spread = find_slots(now, JobView{}, 2, true);

  EXPECT_EQ(fewest->first, PlaceId{2});
  EXPECT_EQ(spread->first, PlaceId{1});
}

}  // namespace
}  // namespace ymir
