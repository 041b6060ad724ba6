#include "policy/hours.h"

#include <gtest/gtest.h>
#include <limits>

namespace remuda::policy {
namespace {

constexpr double kHour_s = 3600, kDay_s = 86400;
constexpr double kMonday = 4 * kDay_s;  // 1970-01-05
constexpr double kForever = std::numeric_limits<double>::infinity();

const Hours kOffice{*parse_days("Mon-Fri"), 8 * 60, 18 * 60};
const Hours kNight{*parse_days("Fri"), 22 * 60, 6 * 60};

TEST(Hours, MeetATimeWithinThem) {
  EXPECT_FALSE(kOffice.meet(kMonday, kMonday + 8 * kHour_s, 0)) << "ends as they begin";
  EXPECT_TRUE(kOffice.meet(kMonday, kMonday + 8 * kHour_s + 1, 0));
  EXPECT_TRUE(kOffice.meet(kMonday + 12 * kHour_s, kMonday + 12 * kHour_s + 1, 0));
  EXPECT_FALSE(kOffice.meet(kMonday + 18 * kHour_s, kMonday + 20 * kHour_s, 0)) << "begins as they end";
  EXPECT_TRUE(kOffice.meet(kMonday + 8 * kHour_s, kMonday + 8 * kHour_s, 0)) << "the moment in which they begin";
  EXPECT_FALSE(kOffice.meet(kMonday + 5 * kDay_s, kMonday + 7 * kDay_s, 0)) << "a weekend";
  EXPECT_TRUE(kOffice.meet(kMonday + 5 * kDay_s, kForever, 0));
}

TEST(Hours, MayEndOnTheNextDay) {
  const double saturday = kMonday + 5 * kDay_s;
  EXPECT_TRUE(kNight.meet(saturday + 5 * kHour_s, saturday + 6 * kHour_s, 0));
  EXPECT_FALSE(kNight.meet(saturday + 6 * kHour_s, saturday + kDay_s, 0));
  EXPECT_TRUE(kNight.meet(saturday - 2 * kHour_s, saturday - kHour_s, 0));
}

TEST(Hours, EndNext) {
  EXPECT_EQ(kOffice.next_end_s(kMonday, 0), kMonday + 18 * kHour_s);
  EXPECT_EQ(kOffice.next_end_s(kMonday + 18 * kHour_s, 0), kMonday + kDay_s + 18 * kHour_s);
  EXPECT_EQ(kOffice.next_end_s(kMonday + 5 * kDay_s, 0), kMonday + 7 * kDay_s + 18 * kHour_s) << "a weekend";
  EXPECT_EQ(kOffice.next_end_s(kMonday, kHour_s), kMonday + 17 * kHour_s) << "where clocks are an hour ahead";
  EXPECT_EQ(kNight.next_end_s(kMonday + 5 * kDay_s, 0), kMonday + 5 * kDay_s + 6 * kHour_s) << "since Friday";
  EXPECT_EQ(Hours{.days = {}}.next_end_s(kMonday, 0), kForever);
}

TEST(Hours, AreThoseOfTheTimeZone) {
  EXPECT_TRUE(kOffice.meet(kMonday + 7 * kHour_s, kMonday + 7.5 * kHour_s, kHour_s));
  EXPECT_FALSE(kOffice.meet(kMonday + 17 * kHour_s, kMonday + 18 * kHour_s, kHour_s));
}

TEST(Hours, AreReadAndShown) {
  EXPECT_EQ(parse_minute("08:05"), 485);
  EXPECT_EQ(parse_minute("24:00"), Hours::kMinutesOfDay);
  for (const char* text : {"", "8:05", "24:01", "12:60", "-1:00", "aa:bb"}) EXPECT_FALSE(parse_minute(text)) << text;
  for (const char* text : {"", "Mo", "Mon-", "Mon,", "mon", "Mon-Tue-Wed"}) EXPECT_FALSE(parse_days(text)) << text;
  EXPECT_EQ(hours_text(kOffice), "Mon-Fri 08:00-18:00");
  EXPECT_EQ(hours_text({*parse_days("Fri-Mon,Wed"), 0, Hours::kMinutesOfDay}), "Mon,Wed,Fri-Sun");
  EXPECT_EQ(hours_text({}), "always");
}

}  // namespace
}  // namespace remuda::policy
