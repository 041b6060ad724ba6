#include "top/bars.h"

#include <gtest/gtest.h>

namespace remuda::top {
namespace {

TEST(TopBars, APartOfAWhole) {
  const auto drawn = [](std::optional<double> part, Charset charset = Charset::utf8) {
    return text_of(bar(part, 4, charset, Tone::work));
  };
  EXPECT_EQ(drawn(0), "────");
  EXPECT_EQ(drawn(0.5), "━━──");
  EXPECT_EQ(drawn(0.375), "━╸──");
  EXPECT_EQ(drawn(1), "━━━━");
  EXPECT_EQ(drawn(7), "━━━━");
  EXPECT_EQ(drawn(0.5, Charset::ascii), "==--");
  EXPECT_EQ(drawn(std::nullopt), "") << "unknown is not 0";
}

TEST(TopBars, ASeriesOverTime) {
  const snapshot::Series series{0, 0, 0.5, 0.5, std::nullopt, std::nullopt, 1, std::nullopt};
  EXPECT_EQ(text_of(sparkline(series, 1, 4, Charset::utf8, Tone::work)), "▁▅ █");
  EXPECT_EQ(text_of(sparkline(series, 1, 4, Charset::ascii, Tone::work)), "_= #");
  EXPECT_EQ(text_of(sparkline(series, 2, 4, Charset::utf8, Tone::work)), "▁▃ ▅");
  EXPECT_EQ(sparkline(series, 1, 20, Charset::utf8, Tone::work).size(), 20u) << "also where it has fewer values";
  EXPECT_EQ(text_of(sparkline({}, 1, 4, Charset::utf8, Tone::work)), "");
  EXPECT_EQ(text_of(sparkline(series, 0, 4, Charset::utf8, Tone::work)), "");
}

}  // namespace
}  // namespace remuda::top
