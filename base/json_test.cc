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

TEST(ParseJson, RefusesWhatIsNestedSoDeepThatACopyOfItWouldExhaustTheStack) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(200), "deep"));
  for (const size_t depth : {201, 100'000, 1'000'000})
    EXPECT_EQ(parse_json(nested(depth), "deep").error().message, "deep is nested too deep");
  EXPECT_FALSE(parse_json(std::string(1'000'000, '['), "deep"));
  EXPECT_TRUE(parse_json("[\"" + std::string(1000, '{') + "\\\"" + std::string(1000, '[') + "\"]", "text")) << "a text";
  std::string siblings = "[";
  for (int i = 0; i < 1000; ++i) siblings += "[],";
  EXPECT_TRUE(parse_json(siblings + "[]]", "siblings"));
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
