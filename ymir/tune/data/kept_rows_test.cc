#include "ymir/tune/data/kept_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kPlenty = 1 << 20;
constexpr std::size_t kNumbersAt = 24 + 3 * 8;  // header and marks of three rows

class KeptRowsFile : public ::testing::Test {
 protected:
  KeptRows open(const std::vector<std::int64_t>& sizes = {2, 3, 1},
                std::uint64_t max_bytes = kPlenty) const {
    auto kept = KeptRows::open(path, sizes, max_bytes);
    EXPECT_TRUE(kept) << kept.error().message;
    return *std::move(kept);
  }
  static std::vector<float> read(KeptRows& kept, std::size_t row, std::size_t size) {
    std::vector<float> out(size);
    return kept.read(row, out) ? out : std::vector<float>{};
  }
  // Overwrites bytes of the file.
  void damage(std::size_t at) const {
    std::string bytes = *read_file(path);
    bytes[at] = static_cast<char>(bytes[at] + 1);
    ASSERT_TRUE(write_file(path, bytes));
  }

  TempFolder folder{"kept"};
  const std::string path = folder / "rows";
  const std::vector<float> two{1, 2}, three{3, 4, 5}, one{6};
};

TEST_F(KeptRowsFile, GivesWhatWasWrittenAndNothingElse) {
  KeptRows kept = open();

  EXPECT_TRUE(kept.write(1, three));

  EXPECT_THAT(read(kept, 1, 3), ElementsAre(3, 4, 5));
  EXPECT_TRUE(read(kept, 0, 2).empty());
  EXPECT_TRUE(read(kept, 2, 1).empty());
}

TEST_F(KeptRowsFile, IsSharedByAllWhoHaveItOpenAndKeptForLater) {
  KeptRows a = open(), b = open();

  a.write(0, two);
  b.write(2, one);

  EXPECT_THAT(read(b, 0, 2), ElementsAre(1, 2));
  EXPECT_THAT(read(a, 2, 1), ElementsAre(6));
  KeptRows later = open();
  EXPECT_THAT(read(later, 0, 2), ElementsAre(1, 2));
}

TEST_F(KeptRowsFile, ARowThatDoesNotMatchItsChecksumIsAbsentUntilItIsWrittenAgain) {
  open().write(0, two);
  open().write(1, three);
  damage(kNumbersAt + 2);
  KeptRows kept = open();

  EXPECT_TRUE(read(kept, 0, 2).empty());
  EXPECT_THAT(read(kept, 1, 3), ElementsAre(3, 4, 5));
  EXPECT_TRUE(kept.write(0, two));
  EXPECT_THAT(read(kept, 0, 2), ElementsAre(1, 2));
}

TEST_F(KeptRowsFile, OfOtherSizesOrAnotherKindIsReplaced) {
  open().write(0, two);
  KeptRows wider = open({3, 3, 1});
  EXPECT_TRUE(read(wider, 0, 3).empty());

  ASSERT_TRUE(write_file(path, std::string(kNumbersAt + 6 * sizeof(float), 'x')));
  KeptRows kept = open();
  EXPECT_TRUE(read(kept, 0, 2).empty());
  EXPECT_TRUE(kept.write(0, two));
  EXPECT_THAT(read(kept, 0, 2), ElementsAre(1, 2));
}

TEST_F(KeptRowsFile, RowsBeyondTheLimitAreNotKept) {
  KeptRows kept = open({2, 3, 1}, kNumbersAt + 5 * sizeof(float));

  EXPECT_TRUE(kept.write(1, three));
  EXPECT_FALSE(kept.write(2, one));

  EXPECT_TRUE(read(kept, 2, 1).empty());
  EXPECT_EQ(std::filesystem::file_size(path), kNumbersAt + 5 * sizeof(float));
}

TEST_F(KeptRowsFile, AWriteThatFailsLeavesTheRowAbsentAndIsTheLast) {
  KeptRows kept = open();
  ASSERT_TRUE(kept.write(0, two));
  struct rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // the write fails instead
  const struct rlimit small{kNumbersAt + 3 * sizeof(float), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);

  const bool written = kept.write(1, three);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_FALSE(written);
  EXPECT_TRUE(read(kept, 1, 3).empty());
  EXPECT_FALSE(kept.write(2, one));
  EXPECT_THAT(read(kept, 0, 2), ElementsAre(1, 2));
}

TEST_F(KeptRowsFile, AFolderThatIsNotThereIsAnError) {
  const std::vector<std::int64_t> sizes{1};

  EXPECT_EQ(KeptRows::open(folder / "no/rows", sizes, kPlenty).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ymir
