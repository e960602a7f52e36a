#include "ymir/base/text.h"

#include <gtest/gtest.h>

namespace ymir {
namespace {

TEST(Text, NumbersMustBeWholeAndFinite) {
  EXPECT_EQ(parse_double("1e-3"), 1e-3);
  EXPECT_EQ(parse_double("-4"), -4.0);
  for (const char* bad : {"", " 1", "1 ", "1.0x", "nan", "inf", "1e999", "0x10", "--1"})
    EXPECT_FALSE(parse_double(bad)) << bad;
  EXPECT_EQ(parse_int("42"), 42);
  for (const char* bad : {"", "4.2", "4e2", "99999999999999999999"}) EXPECT_FALSE(parse_int(bad));
}

TEST(Text, EditDistanceCountsASwapOnce) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("sentance", "sentence"), 1);
  EXPECT_EQ(edit_distance("qery", "query"), 1);
  EXPECT_EQ(edit_distance("modle", "model"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Text, NearestTakesTheClosestWithinTheLimit) {
  const std::vector<std::string> known = {"batch", "lr", "schedule"};
  EXPECT_EQ(nearest("bach", known), "batch");
  EXPECT_EQ(nearest("shedule", known), "schedule");
  EXPECT_FALSE(nearest("epochs", known));
}

TEST(Text, WhatIsNotUtf8IsReplacedAsPythonDoes) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(repaired_utf8("naïve 漢字"), "naïve 漢字");
  EXPECT_EQ(repaired_utf8("a\xE2\x82z"), "a" + mark + "z");  // a cut character is one
  EXPECT_EQ(repaired_utf8("\xF0\x9F\x98"), mark);
  EXPECT_EQ(repaired_utf8("\xC0\x80"), mark + mark);             // no character begins so
  EXPECT_EQ(repaired_utf8("\xED\xA0\x80"), mark + mark + mark);  // a surrogate
  EXPECT_EQ(repaired_utf8("\xF5\x80\xFF"), mark + mark + mark);
  EXPECT_EQ(repaired_utf8("\xE0\x9F\xF4\x90"), mark + mark + mark + mark);
}

TEST(Text, PrintableShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("naïve 漢字"), "naïve 漢字");
  EXPECT_EQ(printable(std::string_view("a\0\x1B[31m\n\t", 9)), "a\\x00\\x1B[31m\\n\\t");
  EXPECT_EQ(printable("\xFF\xC2\x9B"), "\\xFF\\x9B");
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "abc"),
            "\\u202Eabc");
}

TEST(Text, Utf8ChecksOverlongSurrogatesAndTruncation) {
  EXPECT_TRUE(valid_utf8("naïve 漢字 🙂"));
  std::size_t bad = 0;
  for (const std::string& text :
       {std::string("ab\xC0\x80"), std::string("ab\xED\xA0\x80"), std::string("ab\xE2\x82"),
        std::string("ab\xFF"), std::string("ab\xF5\x80\x80\x80")}) {
    EXPECT_FALSE(valid_utf8(text, &bad));
    EXPECT_EQ(bad, 2u);
  }
}

TEST(Text, FitCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("漢字a"), 5);
  EXPECT_EQ(fit("漢字a", 5), "漢字a");
  EXPECT_EQ(fit("漢字a", 4), "漢…");
  EXPECT_EQ(fit("abc", 0), "");
}

TEST(Text, DurationsHaveAtMostTwoUnits) {
  EXPECT_EQ(format_duration(0.44), "0.4s");
  EXPECT_EQ(format_duration(59.7), "1m 00s");
  EXPECT_EQ(format_duration(200), "3m 20s");
  EXPECT_EQ(format_duration(3900), "1h 05m");
  EXPECT_EQ(format_duration(90000), "1d 01h");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
}

TEST(Text, EveryCodePointSurvivesUtf8AndSurrogatesDoNot) {
  for (char32_t c = 0; c <= 0x110000; ++c) {
    std::string bytes;
    append_utf8(bytes, c);
    char32_t back = 0;

    const std::size_t length = decode_utf8(bytes, back);

    const bool valid = c < 0xD800 || (c > 0xDFFF && c < 0x110000);
    ASSERT_EQ(length, valid ? bytes.size() : 0) << static_cast<unsigned>(c);
    if (valid) {
      ASSERT_EQ(back, c);
    }
  }
}

TEST(Text, DurationsAndSizesNeedAKnownUnit) {
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("1.5h"), 5400);
  EXPECT_EQ(parse_duration("2d"), 172800);
  for (const char* bad : {"", "s", "90", "-1s", "5 m", "5min", "infs"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
  EXPECT_EQ(parse_size("16GiB"), std::int64_t{16} << 30);
  EXPECT_EQ(parse_size("1000"), 1000);
  for (const char* bad : {"", "GiB", "16GB", "-1MiB", "1e300TiB"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

}  // namespace
}  // namespace ymir
