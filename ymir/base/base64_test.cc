#include "ymir/base/base64.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ymir {
namespace {

TEST(Base64, PrintsTheExamplesOfTheRfc) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, GivesBackAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    RC_ASSERT(from_base64(to_base64(bytes)) == std::optional(bytes));
  }));
}

TEST(Base64, RefusesWhatItWouldNotPrint) {
  for (const char* text :
       {"Zg=", "Zg", "Zh==", "Z===", "====", "Zm9=", "Zm9v====", "Zm\n9", "Zg==Zg=="})
    EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace ymir
