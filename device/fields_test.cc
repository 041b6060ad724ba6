#include "device/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/device.h"

namespace remuda {
namespace {

Json parsed(const char* text) { return parse_json(text, "test").value(); }

TEST(Fields, AReadingWithoutATimeReadsAsItsValue) {
  Reading<int> reading;
  ASSERT_TRUE(fields::read(parsed("7"), "x", reading));
  EXPECT_EQ(reading, Reading<int>(7));
  ASSERT_TRUE(fields::read(parsed(R"({"value":7,"time_s":3})"), "x", reading));
  EXPECT_EQ(reading, Reading<int>(7, 3));
}

TEST(Fields, AWrongReadingNamesItsPlace) {
  Reading<int> reading;
  EXPECT_EQ(fields::read(parsed(R"({"value":"seven"})"), "x", reading).error().message,
            "x must be a whole number, not string");
  EXPECT_EQ(fields::read(parsed(R"({"value":7,"time_s":"late"})"), "x", reading).error().message,
            "x.time_s must be a number, not string");
  EXPECT_FALSE(fields::read(parsed("{}"), "x", reading));
}

TEST(Fields, ATextIsBounded) {
  std::string text;
  EXPECT_THAT(fields::read(Json(std::string(fields::kLongestText + 1, 'a')), "x", text).error().message,
              testing::HasSubstr("longer than"));
}

TEST(Fields, AListIsBounded) {
  std::vector<int> list;
  EXPECT_THAT(fields::read(Json(std::vector<int>(fields::kLongestList + 1)), "x", list).error().message,
              testing::HasSubstr("at most"));
}

TEST(Fields, WhatIsEmptyIsLeftOut) {
  EXPECT_EQ(to_line(fields::write(Process{.pid = 3})), R"({"pid":3})");
  EXPECT_EQ(to_line(fields::write(Status{})), "{}");
}

}  // namespace
}  // namespace remuda
