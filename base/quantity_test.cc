#include "base/quantity.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

TEST(Amount, IsReadInThousandsAndIn1024s) {
  EXPECT_EQ(parse_amount("24GiB"), 24.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(parse_amount("40Gi"), 40.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(parse_amount("24g"), 24e9);
  EXPECT_EQ(parse_amount("1.5TB"), 1.5e12);
  EXPECT_EQ(parse_amount("512"), 512);
  EXPECT_EQ(parse_amount("512B"), 512);
}

TEST(Amount, IsNothingElse) {
  for (const char* text : {"", "G", "-1G", "1e3", "0x10", "1 G", "1GiBs", "1iB", "inf", "nan", "99999999P", ".5G"})
    EXPECT_FALSE(parse_amount(text)) << text;
}

TEST(Part, IsAPercentageOrAFraction) {
  EXPECT_DOUBLE_EQ(parse_part("30%").value(), 0.3);
  EXPECT_DOUBLE_EQ(parse_part("0.3").value(), 0.3);
  EXPECT_DOUBLE_EQ(parse_part("100%").value(), 1);
  for (const char* text : {"", "0", "0%", "101%", "1.01", "-0.5", "30 %", "a"}) EXPECT_FALSE(parse_part(text)) << text;
}

TEST(AmountText, NeverRoundsUp) {
  EXPECT_EQ(amount_text(int64_t{40} << 30), "40 GiB");
  EXPECT_EQ(amount_text(int64_t{24564} << 20), "23.98 GiB");
  EXPECT_EQ(amount_text(512), "512 bytes");
}

}  // namespace
}  // namespace remuda
