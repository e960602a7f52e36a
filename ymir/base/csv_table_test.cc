#include "ymir/base/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ymir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CsvTable, GivesWholeColumnsByName) {
  const std::string text = "name,batch,seconds\r\na, 4,0.5\r\n\r\nb,8,1e-3";

  const auto table = CsvTable::parse(text, "t.csv");

  ASSERT_TRUE(table);
  EXPECT_THAT(*table->texts("name"), ElementsAre("a", "b"));
  EXPECT_THAT(*table->integers("batch"), ElementsAre(4, 8));
  EXPECT_THAT(*table->numbers("seconds"), ElementsAre(0.5, 1e-3));
}

TEST(CsvTable, NamesTheLineOfAFault) {
  const auto table = CsvTable::parse("a,b\n\n1,2\n3,nan\n", "t.csv");
  ASSERT_TRUE(table);

  const auto numbers = table->numbers("b");

  ASSERT_FALSE(numbers);
  EXPECT_THAT(numbers.error().message, HasSubstr("t.csv:4: b is not a number: nan"));
  EXPECT_THAT(table->fault(0, "odd").message, HasSubstr("t.csv:3: odd"));
}

TEST(CsvTable, RefusesAValueOutOfItsRange) {
  const auto table = CsvTable::parse("a\n1\n2.5\n", "t.csv");
  ASSERT_TRUE(table);

  const auto inside = table->numbers("a", 1, 2.5);
  const auto outside = table->numbers("a", 0, 2);

  EXPECT_TRUE(inside);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().message, "t.csv:3: a is not within 0 and 2: 2.5");
}

TEST(CsvTable, RefusesAColumnThatIsNotThere) {
  const auto table = CsvTable::parse("a,b\n", "t.csv");
  ASSERT_TRUE(table);

  const auto column = table->integers("c");

  ASSERT_FALSE(column);
  EXPECT_EQ(column.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(column.error().message, HasSubstr("t.csv:1: no column c (has a, b)"));
}

TEST(CsvTable, RefusesWhatIsNotAPlainTable) {
  struct Case {
    std::string text{}, message{};
  };
  const std::vector<Case> cases = {{"", "t.csv:1: no header row"},
                                   {"\xEF\xBB\xBF"
                                    "a\n",
                                    "t.csv:1: begins with a byte order mark"},
                                   {"a,b\n1\n", "t.csv:2: 1 fields where the header has 2"},
                                   {"a,b\n1,2,3\n", "t.csv:2: 3 fields where the header has 2"},
                                   {"a\n\"1\"\n", "t.csv:2: quoted fields are not read here"}};

  for (const Case& c : cases) {
    const auto table = CsvTable::parse(c.text, "t.csv");

    ASSERT_FALSE(table) << c.text;
    EXPECT_EQ(table.error().message, c.message);
  }
}

TEST(CsvTable, StopsAtItsLimits) {
  const CsvLimits limits{.bytes = 100, .rows = 2, .columns = 2};

  const auto long_text = CsvTable::parse(std::string(101, 'a'), "t.csv", limits);
  const auto rows = CsvTable::parse("a\n1\n2\n3\n", "t.csv", limits);
  const auto columns = CsvTable::parse("a,b,c\n", "t.csv", limits);

  ASSERT_FALSE(long_text);
  ASSERT_FALSE(rows);
  ASSERT_FALSE(columns);
  EXPECT_EQ(long_text.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(rows.error().message, HasSubstr("t.csv:4: more than 2 rows"));
  EXPECT_THAT(columns.error().message, HasSubstr("t.csv:1: too many columns"));
}

}  // namespace
}  // namespace ymir
