#include "ymir/base/result.h"

#include <gtest/gtest.h>

namespace ymir {
namespace {

TEST(ExitCodes, FollowTheContract) {
  EXPECT_EQ(exit_code(ErrorCode::kInvalidArgument), 2);
  EXPECT_EQ(exit_code(ErrorCode::kNotFound), 2);
  EXPECT_EQ(exit_code(ErrorCode::kUnavailable), 3);
  EXPECT_EQ(exit_code(ErrorCode::kPermission), 3);
  EXPECT_EQ(exit_code(ErrorCode::kConflict), 1);
}

}  // namespace
}  // namespace ymir
