#include "ymir/base/short_text.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace ymir {
namespace {

TEST(ShortText, IsTheWordThatItWasMadeOf) {
  const std::string word = "interpolated";

  const ShortText<15> text(word);

  EXPECT_EQ(text, "interpolated");
  EXPECT_EQ(std::string(text), word);
  EXPECT_FALSE(text.empty());
}

TEST(ShortText, OfNothingIsEmpty) {
  ShortText<15> text("prior");

  text = "";

  EXPECT_TRUE(text.empty());
  EXPECT_EQ(text, ShortText<15>());
}

TEST(ShortText, HoldsAsManyCharactersAsItSays) {
  const ShortText<5> full("12345");

  EXPECT_EQ(full, "12345");
  EXPECT_DEATH(ShortText<5>("123456"), "too long");
}

TEST(ShortText, IsCopiedAsBytes) {
  EXPECT_TRUE(std::is_trivially_copyable_v<ShortText<15>>);
  EXPECT_EQ(sizeof(ShortText<15>), 16u);
}

}  // namespace
}  // namespace ymir
