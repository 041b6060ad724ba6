#include "topology/bandwidth_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::topology {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(LinkSpeeds, EveryFigureHasASourceAndADate) {
  const auto speeds = LinkSpeeds::parse(kLinkSpeedsJson);
  ASSERT_TRUE(speeds) << speeds.error().message;
  for (const LinkFigure& figure : speeds->figures()) {
    EXPECT_THAT(figure.date, MatchesRegex("20[0-9][0-9]-[01][0-9]")) << figure.source;
    EXPECT_THAT(figure.source, MatchesRegex("[A-Za-z]+[,:] .+"));
    EXPECT_GT(figure.gbps, 1);
    EXPECT_LT(figure.gbps, 1000);
  }
}

TEST(LinkSpeeds, NoFigureIsHiddenByOneBeforeIt) {
  for (const LinkFigure& figure : link_speeds().figures())
    EXPECT_EQ(link_speeds().gbps({.of = figure.of,
                                  .version = figure.version.value_or(0),
                                  .chip = figure.chip ? std::string_view(*figure.chip) : "",
                                  .path = figure.path ? std::string_view(*figure.path) : "",
                                  .near = figure.near.value_or(false)}),
              figure.gbps)
        << figure.of << ": " << figure.source;
}

TEST(LinkSpeeds, TheSpecialStandsBeforeTheGeneral) {
  EXPECT_EQ(link_speeds().gbps({.of = "nvlink", .version = 1}), 20);
  EXPECT_EQ(link_speeds().gbps({.of = "nvlink", .version = 3}), 25);
  EXPECT_EQ(link_speeds().gbps({.of = "nvlink", .version = 3, .other_chip = "8.6"}), 14.0625);
  EXPECT_EQ(link_speeds().gbps({.of = "nvlink", .version = 99}), 25);
  EXPECT_EQ(link_speeds().gbps({.of = "xgmi", .chip = "gfx942"}), 64);
  EXPECT_EQ(link_speeds().gbps({.of = "xgmi", .chip = "gfx1100"}), 25);
  EXPECT_EQ(link_speeds().gbps({.of = "pcie", .path = "SYS", .near = true}), 14);
  EXPECT_EQ(link_speeds().gbps({.of = "pcie", .path = "SYS"}), 10);
  EXPECT_EQ(link_speeds().gbps({.of = "pcie", .path = "PCIE", .near = true}), 16);
}

TEST(LinkSpeeds, AKindThatIsNotThereIsABug) {
  EXPECT_DEATH(link_speeds().gbps({.of = "telegraph"}), "every kind of link has a figure");
}

std::string error_of(std::string_view figures) {
  const auto parsed = LinkSpeeds::parse(std::string(R"({"figures": [)") + std::string(figures) + "]}");
  return parsed ? "no error" : parsed.error().message;
}

TEST(LinkSpeeds, SaysWhichFigureIsWrong) {
  EXPECT_THAT(error_of(R"({"of": "rope", "gbps": 1, "date": "2020-01", "source": "s"})"),
              HasSubstr("figure 1: \"rope\" is no kind of link"));
  EXPECT_THAT(error_of(R"({"of": "xgmi", "gbps": 0, "date": "2020-01", "source": "s"})"), HasSubstr("above 0"));
  EXPECT_THAT(error_of(R"({"of": "xgmi", "gbps": 1, "date": "", "source": "s"})"), HasSubstr("source and date"));
  EXPECT_THAT(error_of(R"({"of": "xgmi", "gbps": "1", "date": "2020-01", "source": "s"})"), HasSubstr("figure 1"));
  EXPECT_THAT(error_of(R"({"of": "xgmi", "gbps": 1, "date": "2020-01", "source": "s"})"),
              HasSubstr("nvlink has no figure that holds always"));
  EXPECT_THAT(error_of("1"), HasSubstr("figure 1"));
  EXPECT_FALSE(LinkSpeeds::parse("{}"));
  EXPECT_FALSE(LinkSpeeds::parse("{"));
}

}  // namespace
}  // namespace remuda::topology
