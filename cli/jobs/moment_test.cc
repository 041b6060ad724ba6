#include "cli/jobs/moment.h"

#include <ctime>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

/// Noon of a day, in whatever time zone the test runs.
double noon() {
  std::tm parts{};
  parts.tm_year = 2026 - 1900;
  parts.tm_mon = 10;
  parts.tm_mday = 24;
  parts.tm_hour = 12;
  parts.tm_isdst = -1;
  return static_cast<double>(std::mktime(&parts));
}

constexpr double kOneHour_s = 3600;

TEST(Moment, IsRelativeToNow) {
  EXPECT_EQ(parse_moment("2h", noon(), Side::future), noon() + 2 * kOneHour_s);
  EXPECT_EQ(parse_moment("2h", noon(), Side::past), noon() - 2 * kOneHour_s);
  EXPECT_EQ(parse_moment("now+90s", noon(), Side::future), noon() + 90);
  EXPECT_EQ(parse_moment("now", noon(), Side::future), noon());
}

TEST(Moment, IsTheNextOrTheLastTimeOfDay) {
  EXPECT_EQ(parse_moment("14:30", noon(), Side::future), noon() + 2.5 * kOneHour_s);
  EXPECT_EQ(parse_moment("11:00", noon(), Side::future), noon() + 23 * kOneHour_s);
  EXPECT_EQ(parse_moment("11:00", noon(), Side::past), noon() - kOneHour_s);
  EXPECT_EQ(parse_moment("14:30", noon(), Side::past), noon() - 21.5 * kOneHour_s);
  EXPECT_EQ(parse_moment("12:00", noon(), Side::past), noon());
}

TEST(Moment, IsOfTheCalendar) {
  EXPECT_EQ(parse_moment("2026-11-24", noon(), Side::future), noon() - 12 * kOneHour_s);
  EXPECT_EQ(parse_moment("2026-11-24 13:05", noon(), Side::past), noon() + 65 * 60);
  EXPECT_EQ(parse_moment("2026-11-24T13:05:07", noon(), Side::past), noon() + 65 * 60 + 7);
}

TEST(Moment, IsNothingElse) {
  for (const char* text : {"", "soon", "-2h", "now+", "now-2h", "25:00", "14:30x", "2026-02-30", "2026-13-01",
                           "2026-11-24 13:05 CET", "2026-11-24  ", "1e300d"})
    EXPECT_FALSE(parse_moment(text, noon(), Side::future)) << text;
  EXPECT_FALSE(parse_moment("now+2h", noon(), Side::past));
}

}  // namespace
}  // namespace remuda::cli
