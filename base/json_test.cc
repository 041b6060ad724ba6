#include "base/json.h"

#include <gmock/gmock.h>
#include <string>

namespace remuda {
namespace {

using ::testing::HasSubstr;

TEST(ParseJson, KeepsTheOrderOfKeys) {
  const auto json = parse_json(R"({"z": 1, "a": [true, null, "x"]})", "text");
  ASSERT_TRUE(json);
  EXPECT_EQ(to_line(*json), R"({"z":1,"a":[true,null,"x"]})");
}

TEST(ParseJson, NamesTheSourceAndTheByte) {
  const auto json = parse_json(R"({"a": })", "report.json");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().kind, ErrorKind::usage);
  EXPECT_EQ(json.error().message, "report.json is not JSON: error at byte 7");
}

TEST(ParseJson, RefusesInsteadOfThrowing) {
  for (const char* text : {"", " ", "{", "[1,]", "nul", "'a'", "1 2", "\"\xff\"", "1e999", "-1e999", "[1e999]"}) {
    const auto json = parse_json(text, "here");
    ASSERT_FALSE(json) << text;
    EXPECT_THAT(json.error().message, HasSubstr("here")) << text;
  }
}

TEST(ParseJson, SurvivesDeepNesting) {
  const size_t depth = 20'000;
  EXPECT_FALSE(parse_json(std::string(depth, '['), "deep"));
  EXPECT_TRUE(parse_json(std::string(depth, '[') + std::string(depth, ']'), "deep"));
}

TEST(JsonText, OfBytesThatAreNotUtf8IsReplacedNotThrownOn) {
  EXPECT_EQ(to_line(Json{{"name", "a\xffz"}}), "{\"name\":\"a\xEF\xBF\xBDz\"}");
}

TEST(JsonText, IsIndentedByTwoAndEndsInANewline) { EXPECT_EQ(to_pretty(Json{{"a", 1}}), "{\n  \"a\": 1\n}\n"); }

TEST(JsonText, KeepsListsOfPlainValuesOnOneLine) {
  EXPECT_EQ(
      to_pretty(Json{{"cores", {0, 1, 2}}, {"none", Json::array()}, {"pairs", {{1, "a"}, Json::array({2, "b"})}}}),
      "{\n  \"cores\": [0, 1, 2],\n  \"none\": [],\n  \"pairs\": [\n    [1, \"a\"],\n    [2, \"b\"]\n  ]\n}\n");
}

}  // namespace
}  // namespace remuda
