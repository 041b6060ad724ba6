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

TEST(LinkSpeeds, EveryLatencyHasASourceAndADate) {
  EXPECT_EQ(link_speeds().latencies().size(), 5U);
  for (const LatencyFigure& figure : link_speeds().latencies()) {
    EXPECT_THAT(figure.date, MatchesRegex("20[0-9][0-9]-[01][0-9]")) << figure.source;
    EXPECT_THAT(figure.source, MatchesRegex("[A-Za-z]+[,:] .+"));
    EXPECT_LT(figure.us, 100);
  }
  EXPECT_EQ(link_speeds().latency_us("nvlink"), 3.4);
  EXPECT_DEATH(link_speeds().latency_us("telegraph"), "every kind of transfer has a latency");
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
  EXPECT_EQ(link_speeds().gbps({.of = "xgmi", .chip = "gfx950"}), 76.5);
  EXPECT_EQ(link_speeds().gbps({.of = "xgmi", .chip = "gfx1100"}), 25);
  EXPECT_EQ(link_speeds().gbps({.of = "pcie", .path = "SYS", .near = true}), 14);
  EXPECT_EQ(link_speeds().gbps({.of = "pcie", .path = "SYS"}), 10);
  EXPECT_EQ(link_speeds().gbps({.of = "pcie", .path = "PCIE", .near = true}), 16);
}

TEST(LinkSpeeds, AKindThatIsNotThereIsABug) {
  EXPECT_DEATH(link_speeds().gbps({.of = "telegraph"}), "every kind of link has a figure");
}

std::string message_of(const Result<LinkSpeeds>& parsed) { return parsed ? "no error" : parsed.error().message; }

std::string error_of(std::string_view figures) {
  return message_of(
      LinkSpeeds::parse(std::string(R"({"figures": [)") + std::string(figures) + R"(], "latencies": []})"));
}

/// Of a latency in place of all those of the real table.
std::string latency_error_of(std::string_view latencies) {
  const std::string table = kLinkSpeedsJson;
  const size_t begin = table.find("\"latencies\": [") + 14;
  return message_of(LinkSpeeds::parse(table.substr(0, begin) + std::string(latencies) + "]}"));
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
  EXPECT_THAT(message_of(LinkSpeeds::parse(R"({"figures": []})")), HasSubstr("latencies must be a list"));
  EXPECT_FALSE(LinkSpeeds::parse("{"));
}

TEST(LinkSpeeds, SaysWhichLatencyIsWrong) {
  EXPECT_THAT(latency_error_of(R"({"of": "rope", "us": 1, "date": "2020-01", "source": "s"})"),
              HasSubstr("latency 1: \"rope\" is no kind of transfer"));
  EXPECT_THAT(latency_error_of(R"({"of": "pcie", "us": 0, "date": "2020-01", "source": "s"})"), HasSubstr("above 0"));
  EXPECT_THAT(latency_error_of(R"({"of": "pcie", "us": 1, "date": "2020-01", "source": ""})"),
              HasSubstr("source and date"));
  EXPECT_THAT(latency_error_of(R"({"of": "pcie"})"), HasSubstr("latency 1"));
  EXPECT_THAT(latency_error_of(R"({"of": "pcie", "us": 1, "date": "2020-01", "source": "s"})"),
              HasSubstr("nvlink must have one latency"));
}

}  // namespace
}  // namespace remuda::topology
