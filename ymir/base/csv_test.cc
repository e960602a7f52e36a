#include "ymir/base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(Csv, FindsColumnsByNameInAnyOrderAndTellsWhichWereNotUsed) {
  CsvRows rows("f", "extra,time,name\r\n7,1.5,a\r\n\r\n8, 2 ,\"b,\"\"c\"\n");
  const auto at = rows.columns({"name", "time"});

  std::vector<std::string> names;
  std::vector<double> times;
  while (rows.next()) {
    names.push_back(rows.name(at[0]));
    times.push_back(rows.number(at[1], 0, 10));
  }

  EXPECT_TRUE(rows.ok());
  EXPECT_THAT(names, ElementsAre("a", "b,\"c"));
  EXPECT_THAT(times, ElementsAre(1.5, 2));
  EXPECT_THAT(rows.unused(), ElementsAre("extra"));
  EXPECT_EQ(rows.line(), 4);
}

TEST(Csv, NamesFileLineColumnAndValueOfEveryFault) {
  CsvRows rows("f.csv", "name,time\na,-1\nb,nan\nc,1,2\n,1\nd,1e400\ne,3\n");
  const auto at = rows.columns({"name", "time"});

  int good = 0;
  while (rows.next()) {
    rows.name(at[0]);
    rows.number(at[1], 0, 1e9);
    good += rows.good() ? 1 : 0;
  }

  EXPECT_EQ(good, 1);
  EXPECT_THAT(rows.faults(),
              ElementsAre("f.csv:2: column `time`: must be a number in 0..1000000000: -1",
                          "f.csv:3: column `time`: must be a number in 0..1000000000: nan",
                          HasSubstr("f.csv:4: 3 columns where the header names 2"),
                          HasSubstr("f.csv:5: column `name`: must be a name"),
                          HasSubstr("f.csv:6: column `time`")));
  EXPECT_THAT(rows.ok().error().message, HasSubstr("(and 4 more)"));
}

TEST(Csv, RefusesAByteOrderMarkAMissingAndADoubledColumnAndAnEmptyFile) {
  const auto first_fault = [](std::string_view text) {
    CsvRows rows("f", text);
    rows.columns({"a", "b"});
    EXPECT_FALSE(rows.next());
    return rows.ok() ? std::string() : rows.ok().error().message;
  };

  EXPECT_THAT(first_fault("\xef\xbb\xbf"
                          "a,b\n1,2\n"),
              HasSubstr("f:1: begins with a byte order"));
  EXPECT_THAT(first_fault(std::string_view("\xff\xfe"
                                           "a\0,\0",
                                           6)),
              HasSubstr("UTF-16"));
  EXPECT_THAT(first_fault("a,c\n1,2\n"), HasSubstr("f:1: no column `b` (needs the columns a,b)"));
  EXPECT_THAT(first_fault("a,b,b\n1,2,3\n"), HasSubstr("more than one column `b`"));
  EXPECT_THAT(first_fault("\n\n"), HasSubstr("is empty"));
}

TEST(Csv, KeepsTwentyFaultsAndCountsAll) {
  std::string text = "a\n";
  for (int i = 0; i < 100; ++i) text += "x\n";
  CsvRows rows("f", text);
  const auto at = rows.columns({"a"});

  while (rows.next()) rows.whole(at[0], 0, 1);

  EXPECT_THAT(rows.faults(), SizeIs(20));
  EXPECT_EQ(rows.num_faults(), 100u);
}

TEST(Csv, StopsAtTheBoundsOfRowsColumnsAndBytes) {
  CsvRows many("f", "1\n2\n3\n", ',', 2);
  int rows = 0;
  while (many.next()) ++rows;
  const std::string commas(300, ',');
  CsvRows wide("f", commas);
  EXPECT_FALSE(wide.next());
  const std::string huge(100'000, 'x');
  CsvRows longest("f", huge);
  EXPECT_FALSE(longest.next());

  EXPECT_EQ(rows, 2);
  EXPECT_THAT(many.ok().error().message, HasSubstr("f:3: more than 2 rows"));
  EXPECT_THAT(wide.ok().error().message, HasSubstr("more than 256 columns"));
  EXPECT_THAT(longest.ok().error().message, HasSubstr("more than 65536 bytes"));
}

TEST(Csv, AFileThatIsAbsentOrTooLargeIsAnError) {
  const auto ignore = [](CsvRows&, const std::vector<std::size_t>&) {};

  const auto absent = read_csv("/nonexistent/t.csv", {"a"}, ignore);
  const auto large = read_csv(YMIR_SOURCE_DIR "/CMakeLists.txt", {"a"}, ignore, 10);

  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::kExhausted);
}

RC_GTEST_PROP(Csv, CutsAnyBytesWithoutACrash, (const std::string& text)) {
  CsvRows rows("f", text);
  const auto at = rows.columns({"a"});
  while (rows.next()) {
    rows.name(at[0]);
    rows.number(at[0], 0, 1);
  }
  RC_ASSERT(rows.faults().size() <= 20u);
}

TEST(CsvRows, ReadsWholeNumbersThatAreWrittenAsDecimals) {
  CsvRows rows("f", "n\n4.0\n4e2\n-3.0\n4.5\n1e300\n");
  const auto at = rows.columns({"n"});
  std::vector<std::int64_t> numbers;

  while (rows.next())
    if (const auto number = rows.whole(at[0], -10, 1000); rows.good()) numbers.push_back(number);

  EXPECT_EQ(numbers, (std::vector<std::int64_t>{4, 400, -3}));
  EXPECT_EQ(rows.num_faults(), 2u);
}

TEST(CsvField, IsQuotedWhereItHasTo) {
  const std::string text = "a,\"b\"\nc";

  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field(text), "\"a,\"\"b\"\"\nc\"");
}

}  // namespace
}  // namespace ymir
