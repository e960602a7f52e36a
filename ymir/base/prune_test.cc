#include "ymir/base/prune.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

class Prune : public ::testing::Test {
 protected:
  void make(const std::string& name, int hours_ago) {
    ASSERT_TRUE(write_file(path(name), std::string(100, 'x')));
    fs::last_write_time(path(name),
                        fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  bool is_there(const std::string& name) const { return fs::exists(path(name)); }

  TempFolder folder_{"prune"};
};

TEST_F(Prune, RemovesTheLeastRecentlyUsedUntilTheRestFits) {
  make("a.kept", 1), make("b.kept", 3), make("c.kept", 2), make("d.other", 9);

  prune_folder(folder_ / "", ".kept", 200);

  EXPECT_TRUE(is_there("a.kept"));
  EXPECT_FALSE(is_there("b.kept"));
  EXPECT_TRUE(is_there("c.kept"));
  EXPECT_TRUE(is_there("d.other"));
}

TEST_F(Prune, AFileThatIsMarkedUsedIsTheNewest) {
  make("a.kept", 1), make("b.kept", 3);

  mark_used(path("b.kept"));
  prune_folder(folder_ / "", ".kept", 0);

  EXPECT_FALSE(is_there("a.kept"));
  EXPECT_TRUE(is_there("b.kept"));
}

TEST_F(Prune, AFolderThatIsNotThereIsLeftAlone) {
  prune_folder(path("nowhere"), ".kept", 0);

  EXPECT_FALSE(is_there("nowhere"));
}

}  // namespace
}  // namespace ymir
