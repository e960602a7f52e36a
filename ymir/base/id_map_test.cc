#include "ymir/base/id_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "ymir/base/boxed.h"
#include "ymir/base/id.h"
#include "ymir/base/inline_vector.h"
#include "ymir/base/rng.h"

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::Pair;

struct ThingTag;
using ThingId = Id<ThingTag>;

TEST(IdMap, AgreesWithAStdMapWhateverIsDone) {
  for (const std::uint64_t spread : {1u, 7u, 100'000u}) {  // without gaps, with few, with many
    Rng rng(spread);
    IdMap<ThingId, std::string> ours;
    std::map<ThingId, std::string> theirs;

    for (int step = 0; step < 4000; ++step) {
      const ThingId id{1 + rng.below(60) * spread};
      if (rng.chance(0.4)) {
        ours.erase(id);
        theirs.erase(id);
      } else {
        ours[id] = theirs[id] = std::to_string(step);
      }

      const ThingId asked{rng.below(62) * spread};
      ASSERT_EQ(ours.contains(asked), theirs.contains(asked));
      ASSERT_EQ(ours.find(asked) == ours.end(), theirs.find(asked) == theirs.end());
      ASSERT_EQ(ours.size(), theirs.size());
      ASSERT_TRUE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()));
    }
  }
}

TEST(IdMap, KeepsWhatItHoldsWhereItIs) {
  IdMap<ThingId, std::string> map;
  std::string& first = map[ThingId{5}];
  first = "five";

  for (std::uint64_t id = 1; id < 100; ++id) map[ThingId{id}] += "!";
  map.erase(ThingId{4});

  EXPECT_EQ(&map.at(ThingId{5}), &first);
  EXPECT_EQ(first, "five!");
}

TEST(IdMap, ACopyIsACopy) {
  IdMap<ThingId, std::string> map;
  map[ThingId{2}] = "two";
  map[ThingId{9}] = "nine";

  IdMap<ThingId, std::string> copy = map;
  copy[ThingId{2}] = "other";

  EXPECT_THAT(map, ElementsAre(Pair(ThingId{2}, "two"), Pair(ThingId{9}, "nine")));
  EXPECT_EQ(copy.rbegin()->first, ThingId{9});
  EXPECT_DEATH(map.at(ThingId{3}), "no such id");
}

TEST(IdSet, AgreesWithAStdSetWhateverIsDone) {
  Rng rng(3);
  IdSet<ThingId> ours;
  std::set<ThingId> theirs;

  for (int step = 0; step < 4000; ++step) {
    const ThingId id{rng.below(50)};
    if (rng.chance(0.4)) {
      ours.erase(id);
      theirs.erase(id);
    } else {
      ASSERT_EQ(ours.insert(id), theirs.insert(id).second);
    }
    ASSERT_EQ(ours.contains(ThingId{7}), theirs.contains(ThingId{7}));
  }

  EXPECT_TRUE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()));
}

TEST(InlineVector, TakesUpToItsNumberOfValues) {
  InlineVector<int, 2> list{4};
  list.push_back(5);

  EXPECT_THAT(list, ElementsAre(4, 5));
  EXPECT_DEATH(list.push_back(6), "a list is full");
}

TEST(Boxed, IsCopiedLikeItsValue) {
  Boxed<std::string> box(std::string("one"));
  Boxed<std::string> copy = box;
  *copy += " more";

  EXPECT_EQ(*box, "one");
  EXPECT_EQ(copy->size(), 8u);
}

}  // namespace
}  // namespace ymir
