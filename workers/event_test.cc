#include "workers/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

TEST(Event, ReadsItsFields) {
  const auto event = parse_event(R"({"event":"step","loss":0.5,"shares":[195,61],"reason":"faster"})");
  ASSERT_TRUE(event);
  EXPECT_EQ(number_field(*event, "loss"), 0.5);
  EXPECT_THAT(numbers_field(*event, "shares"), ElementsAre(195, 61));
  EXPECT_EQ(text_field(*event, "reason"), "faster");
}

TEST(Event, FieldsThatAreMissingOrOfAnotherTypeGiveTheDefault) {
  const auto event = parse_event(R"({"event":"step","loss":"low","shares":3,"list":[1,"two",null],"reason":7})");
  ASSERT_TRUE(event);
  EXPECT_EQ(number_field(*event, "loss", -1), -1);
  EXPECT_EQ(number_field(*event, "absent", 4), 4);
  EXPECT_THAT(numbers_field(*event, "shares"), IsEmpty());
  EXPECT_THAT(numbers_field(*event, "list"), ElementsAre(1, IsNan(), IsNan()));
  EXPECT_EQ(text_field(*event, "reason", "none"), "none");
  EXPECT_EQ(text_field(Json::array(), "reason"), "");
}

TEST(Event, RefusesWhatIsNone) {
  for (const char* line : {"", "{", "null", "[1]", "\"event\"", "{}", R"({"event":3})", "\xff\xfe", "nan"})
    EXPECT_FALSE(parse_event(line)) << line;
}

TEST(Event, RefusesDeepNestingWithoutFalling) { EXPECT_FALSE(parse_event(std::string(100000, '['))); }

TEST(Event, ReportsErrorsWithTheirKind) {
  const auto error = reported_error(Json{{"kind", "lost_peer"}, {"message", "rank 1 went away"}, {"peer", 1}});
  EXPECT_EQ(error.kind, ErrorKind::lost_peer);
  EXPECT_EQ(error.message, "rank 1 went away");
  EXPECT_EQ(error.peer, 1);
  EXPECT_EQ(reported_error(Json{{"kind", "usage"}}).kind, ErrorKind::usage);
  EXPECT_EQ(reported_error(Json{{"kind", "unheard of"}}).kind, ErrorKind::failed);
  EXPECT_EQ(reported_error(Json{{"peer", 1e300}}).peer, -1);
  EXPECT_THAT(reported_error(Json::object()).message, HasSubstr("without saying why"));
}

}  // namespace
}  // namespace remuda::workers
