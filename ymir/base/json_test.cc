#include "ymir/base/json.h"

#include <gtest/gtest.h>

namespace ymir {
namespace {

TEST(Json, ParsesAndPrintsCanonically) {
  const auto json = parse_json(R"({"b":[1,2.5,{"x":null}],"a":"é"})");

  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(canonical(*json), R"({"a":"é","b":[1,2.5,{"x":null}]})");
}

TEST(Json, RefusesWhatACarelessParserWouldTake) {
  EXPECT_FALSE(parse_json(R"({"a":1,"a":2})"));
  EXPECT_FALSE(parse_json("[1] x"));
  EXPECT_FALSE(parse_json("NaN"));
  EXPECT_FALSE(parse_json(""));
  EXPECT_FALSE(parse_json("\"\xff\""));
  EXPECT_FALSE(parse_json(std::string(100, '[') + std::string(100, ']')));
  EXPECT_FALSE(parse_json("[1,2,3]", {.max_bytes = 3}));
  EXPECT_FALSE(parse_json("1e999"));
}

TEST(Json, SaysWhereTheFaultIs) {
  const auto json = parse_json(R"({"a": tru})");

  ASSERT_FALSE(json);
  EXPECT_NE(json.error().message.find("byte"), std::string::npos) << json.error().message;
  EXPECT_EQ(parse_json("[1e999]").error().message,
            "not JSON: byte 6: number overflow parsing '1e999'");
}

TEST(Json, AFieldOfTheWrongKindIsNamed) {
  const Json object = {{"name", "x"}, {"on", true}, {"count", 3}};

  EXPECT_EQ(*text_field(object, "name"), "x");
  EXPECT_EQ(text_field(object, "count").error().message, "count is not a text");
  EXPECT_TRUE(*flag_field(object, "on", false));
  EXPECT_TRUE(*flag_field(object, "absent", true));
  EXPECT_EQ(flag_field(object, "count", false).error().message, "count is not true or false");
}

}  // namespace
}  // namespace ymir
