#include "ymir/tune/data/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace ymir {
namespace {

using testing::ElementsAre;

// Values of an independent computation.
TEST(EpochOrder, IsTheSameOnEveryMachine) {
  EXPECT_THAT(epoch_order(7, 0, 8), ElementsAre(4, 2, 3, 1, 7, 0, 6, 5));
  EXPECT_THAT(epoch_order(7, 1, 8), ElementsAre(5, 0, 1, 7, 3, 4, 6, 2));
  EXPECT_THAT(epoch_order(8, 0, 8), ElementsAre(6, 1, 5, 2, 7, 4, 0, 3));
}

TEST(EpochOrder, PutsEachRowAnywhereEquallyOften) {
  constexpr std::uint32_t kRows = 10, kEpochs = 5000;
  std::vector<int> first(kRows);

  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) ++first[epoch_order(1, epoch, kRows)[0]];

  // 500 expected, standard deviation 21: five of them either way.
  for (const int count : first) EXPECT_NEAR(count, kEpochs / kRows, 110);
}

RC_GTEST_PROP(BatchOrder, AnEpochHoldsEveryRowOnceWhateverTheBatch, ()) {
  const auto rows = *rc::gen::inRange<std::uint32_t>(1, 200);
  const auto batch = *rc::gen::inRange<std::uint32_t>(1, 40);
  const auto epoch = *rc::gen::inRange<std::uint32_t>(0, 1000);
  BatchOrder order(3, rows, batch);

  std::vector<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < order.batches_per_epoch(); ++i) {
    const auto part = order.batch(epoch, i);
    RC_ASSERT(part.size() == batch || i + 1 == order.batches_per_epoch());
    seen.insert(seen.end(), part.begin(), part.end());
  }

  std::ranges::sort(seen);
  std::vector<std::uint32_t> all(rows);
  std::iota(all.begin(), all.end(), 0u);
  RC_ASSERT(seen == all);
}

TEST(BatchOrder, ABatchIsTheSameWhateverWasReadBefore) {
  BatchOrder whole(9, 100, 16), resumed(9, 100, 16);
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch)
    for (std::uint32_t i = 0; i < whole.batches_per_epoch(); ++i) whole.batch(epoch, i);

  const auto later = resumed.batch(2, 6);

  EXPECT_THAT(later, testing::ElementsAreArray(whole.batch(2, 6)));
  EXPECT_EQ(later.size(), 4u);
}

}  // namespace
}  // namespace ymir
