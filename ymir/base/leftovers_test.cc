#include "ymir/base/leftovers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

using ::testing::UnorderedElementsAre;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

TEST(Leftovers, OfTheNamedWriterGoAndNothingElse) {
  const TempFolder temporary("leftovers");
  const std::string& folder = temporary.path();
  for (const char* file : {"image.f32", "image.f32.tmp123-0", "image.bf16.tmp5-1", "notes"})
    ASSERT_TRUE(write_file(folder + "/" + file, "x"));
  ASSERT_TRUE(make_folders(folder + "/image.f32.tmp77"));
  ASSERT_TRUE(write_file(folder + "/image.f32.tmp77/part", "x"));

  remove_leftovers(folder, "image.f32");
  remove_leftovers(folder + "/missing", "image.f32");

  EXPECT_THAT(names_in(folder), UnorderedElementsAre("image.f32", "image.bf16.tmp5-1", "notes"));
}

}  // namespace
}  // namespace ymir
