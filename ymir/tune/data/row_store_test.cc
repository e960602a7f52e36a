#include "ymir/tune/data/row_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

RowContent two_rows(std::int32_t big_id) {
  return {.ids = {2, 7, 3, 2, big_id, 9, 3},
          .offsets = {0, 3, 7},
          .type_ids = {0, 0, 0, 0, 0, 1, 1},
          .facts = {{.hash = 11, .score = 0.5, .label = 1, .line = 2},
                    {.hash = 12, .score = 1.5, .label = 0, .line = 3}},
          .labels = {"no", "yes"},
          .files = {"t.csv"},
          .notes = {},
          .max_length = 16};
}
std::vector<std::int32_t> ids(const RowStore& store, std::size_t row) {
  std::vector<std::int32_t> out;
  store.append_ids(row, out);
  return out;
}

class RowStores : public testing::Test {
 protected:
  Result<RowStore> open(const std::string& key) {
    return RowStore::open_or_build(cache, key, [this]() -> Result<RowContent> {
      ++num_built;
      return two_rows(8);
    });
  }
  const TempFolder temporary_{"rows"};
  const std::string cache = temporary_.path();
  std::atomic<int> num_built{0};
};

TEST_F(RowStores, AreBuiltOnceAndMappedAfterwards) {
  const auto first = open("k");
  const auto second = open("k");
  const auto other = open("l");

  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(second) << second.error().message;
  ASSERT_TRUE(other);
  EXPECT_EQ(num_built, 2);
  EXPECT_EQ(second->size(), 2u);
  EXPECT_THAT(ids(*second, 1), ElementsAre(2, 8, 9, 3));
  std::vector<std::int32_t> types;
  second->append_type_ids(1, types);
  EXPECT_THAT(types, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(second->facts(0).score, 0.5);
  EXPECT_THAT(second->labels(), ElementsAre("no", "yes"));
  EXPECT_EQ(second->place(1), "t.csv:3");
  EXPECT_EQ(second->max_length(), 16);
}

TEST_F(RowStores, KeepLargeVocabulariesToo) {
  const RowStore store = RowStore::make(two_rows(70'000));

  EXPECT_THAT(ids(store, 1), ElementsAre(2, 70'000, 9, 3));
}

TEST_F(RowStores, AreBuiltByOneWhenManyAskAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> num_good{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      if (open("k")) ++num_good;
    });
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(num_good, 8);
  EXPECT_EQ(num_built, 1);
}

TEST_F(RowStores, ThatAreCutOrChangedAreBuiltAgain) {
  ASSERT_TRUE(open("k"));
  const std::string path = cache + "/data/k.ymirdata";
  const std::string whole = *read_file(path);
  for (std::size_t size = 0; size < whole.size(); size += 13) {
    ASSERT_TRUE(write_file(path, whole.substr(0, size)));
    num_built = 0;

    const auto store = open("k");

    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(num_built, 1) << size;
    EXPECT_THAT(ids(*store, 0), ElementsAre(2, 7, 3));
  }
}

TEST_F(RowStores, WhatAKilledWriterLeftGoesWithTheNextOne) {
  const std::string left = cache + "/data/one.ymirdata.tmp123-0",
                    of_another = cache + "/data/two.ymirdata.tmp123-0";
  ASSERT_TRUE(make_folders(cache + "/data"));
  ASSERT_TRUE(write_file(left, "half"));
  ASSERT_TRUE(write_file(of_another, "half, and may be at work"));

  const auto store = open("one");

  ASSERT_TRUE(store);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(of_another));
}

TEST_F(RowStores, AFailedBuildIsToldAndLeavesNothing) {
  const auto store = RowStore::open_or_build(cache, "k", []() -> Result<RowContent> {
    return Error{ErrorCode::kInvalidArgument, "bad rows"};
  });

  EXPECT_EQ(store.error().message, "bad rows");
  EXPECT_FALSE(fs::exists(cache + "/data/k.ymirdata"));
}

}  // namespace
}  // namespace ymir
