#include "base/duration.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

TEST(Duration, IsReadWithItsUnit) {
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("15m"), 900);
  EXPECT_EQ(parse_duration("15min"), 900);
  EXPECT_EQ(parse_duration("2h"), 7200);
  EXPECT_EQ(parse_duration("1.5d"), 129'600);
  for (const char* text : {"", "h", "0", "-1h", "1 h", "1w", "nan", "inf", "1h30m"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

// Times that are no numbers would be kept as null, in files that could not be read again.
TEST(Duration, IsFinite) {
  EXPECT_FALSE(parse_duration("1e305d"));
  EXPECT_TRUE(parse_duration("1e305"));
}

TEST(Duration, IsWrittenInItsTwoLargestUnits) {
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(duration_text(42.4), "42 s");
  EXPECT_EQ(duration_text(59.6), "1 min");
  EXPECT_EQ(duration_text(3599), "59 min");
  EXPECT_EQ(duration_text(3600), "1 h");
  EXPECT_EQ(duration_text(4000), "1 h 6 min");
  EXPECT_EQ(duration_text(90'000), "25 h");
  EXPECT_EQ(duration_text(172'800), "2 days");
  EXPECT_EQ(duration_text(200'000), "2 days 7 h");
  EXPECT_EQ(duration_text(1e300), duration_text(1e15)) << "more than can be counted";
}

}  // namespace
}  // namespace remuda
