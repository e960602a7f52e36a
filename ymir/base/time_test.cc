#include "ymir/base/time.h"

#include <gtest/gtest.h>

namespace ymir {
namespace {

TEST(Time, ReadsWhatItWrites) {
  const Time time = from_seconds(1800036000);

  const auto again = parse_time(format_time(time));

  EXPECT_EQ(format_time(time), "2027-01-15T18:00:00Z");
  EXPECT_EQ(again, time);
}

TEST(Time, OffsetsAndFractionsCount) {
  EXPECT_EQ(parse_time("2027-01-15T19:30:00+01:30"), from_seconds(1800036000));
  EXPECT_EQ(parse_time("2027-01-15T12:00:00-06:00"), from_seconds(1800036000));
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.25Z"), from_seconds(0.25));
}

TEST(Time, RefusesWhatIsNoTime) {
  for (const char* bad : {"", "2027-01-15", "2027-02-30T00:00:00Z", "2027-01-15T18:00:00",
                          "2027-01-15 18:00:00Z", "2027-01-15T24:00:00Z", "2027-01-15T18:00:00.Z",
                          "2027-01-15T18:00:00+1:00", "20a7-01-15T18:00:00Z"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

}  // namespace
}  // namespace ymir
