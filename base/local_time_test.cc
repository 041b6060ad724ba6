#include "base/local_time.h"

#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>
#include <limits>

namespace remuda {
namespace {

class LocalTime : public testing::Test {
 protected:
  static std::string in_zone(const char* zone, double wall_s) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    return local_time_text(wall_s);
  }
  void TearDown() override {
    ::unsetenv("TZ");
    ::tzset();
  }
};

TEST_F(LocalTime, IsThatOfTheZoneAndNamesIt) {
  constexpr double kSummer_s = 1'784'000'000;
  EXPECT_EQ(in_zone("UTC0", kSummer_s), "2026-07-14 03:33 UTC");
  EXPECT_EQ(in_zone("CET-1CEST,M3.5.0,M10.5.0/3", kSummer_s), "2026-07-14 05:33 CEST");
  EXPECT_EQ(in_zone("CET-1CEST,M3.5.0,M10.5.0/3", 0), "1970-01-01 01:00 CET");
}

TEST_F(LocalTime, IsUnknownWhereTheClockWasWrong) {
  for (const double wrong : {-1.0, 1e18, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(local_time_text(wrong), "an unknown time");
}

}  // namespace
}  // namespace remuda
