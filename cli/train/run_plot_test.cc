#include "cli/train/run_plot.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/train/plot_panel.h"

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A report with a history of so many points and ranks.
Json made(size_t points, int ranks = 2, int steps_per_point = 8) {
  Json report{{"steps", points * size_t(steps_per_point)}, {"samples_per_s", 1234.5}, {"devices", Json::array()}};
  Json history{{"steps_per_point", steps_per_point}, {"share", Json::array()}};
  for (size_t i = 0; i < points; ++i) {
    const double loss = 2.5 * std::exp(-3.0 * double(i) / double(points)) + 0.1 * std::sin(double(i));
    history["last_step"].push_back((i + 1) * size_t(steps_per_point));
    history["loss"].push_back(loss);
    history["loss_low"].push_back(loss - 0.2);
    history["loss_high"].push_back(loss + 0.2);
    for (const char* phase : {"data_s", "compute_s", "update_s", "communication_s", "wait_s"})
      history[phase].push_back(0.01 + 0.002 * std::sin(double(i)));
    history["longest_s"].push_back(i == points / 2 ? 5.0 : 0.06);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    report["devices"].push_back({{"id", "gpu:" + std::to_string(rank)}});
    history["share"].push_back(std::vector(points, 1.0 / ranks));
  }
  report["history"] = history;
  return report;
}

size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(RunPlot, HasThreePanelsWithUnitsAndALegend) {
  const std::string svg = run_plot_svg(made(300), "run").value();
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  for (const char* text : {"Loss, mean of a step", "Share of the samples, %", "Time of a step, ms", ">gpu:1<",
                           ">communication<", ">waiting for other devices<", ">lowest to highest<", "2400 steps",
                           "1234 samples/s", "mean of 8 steps", "prefers-color-scheme: dark"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_EQ(count(svg, "class=\"line s"), 3u + 3u) << "the loss and two shares, each in its panel and its legend";
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(RunPlot, IsSmall) { EXPECT_LT(run_plot_svg(made(512), "run").value().size(), 160u << 10); }

TEST(RunPlot, WhereEachStepHasAPointDrawsNoBand) {
  const std::string svg = run_plot_svg(made(20, 1, 1), "run").value();
  EXPECT_THAT(svg, HasSubstr(">each step<"));
  EXPECT_EQ(count(svg, "\"band"), 0u);
}

TEST(RunPlot, ALossThatIsNoNumberIsAGap) {
  Json report = made(5, 1, 1);
  report["history"]["loss"][2] = nullptr;
  report["history"]["loss_low"][2] = report["history"]["loss_high"][2] = nullptr;
  const std::string svg = run_plot_svg(report, "run").value();
  const size_t begin = svg.find("class=\"line s0\" d=\"", svg.find("clip-path")) + 19;
  EXPECT_EQ(count(svg.substr(begin, svg.find('"', begin) - begin), "M"), 2u);
}

TEST(RunPlot, ManyRanksAreToldApart) {
  const std::string svg = run_plot_svg(made(5, 20), "run").value();
  for (const char* line : {"line s7\"", "line s0 dashed\"", "line s0 dotted\""}) EXPECT_THAT(svg, HasSubstr(line));
}

TEST(RunPlot, EscapesNames) {
  Json report = made(5);
  report["devices"][0]["id"] = "<b>&";
  const std::string svg = run_plot_svg(report, "a<b").value();
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;&amp;"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b")));
}

TEST(RunPlot, RefusesWhatHasNoHistoryOrOneWithHoles) {
  for (const char* column : {"loss", "loss_low", "loss_high", "longest_s", "data_s", "wait_s"}) {
    Json holes = made(5);
    holes["history"][column].erase(0);
    const auto refused = run_plot_svg(holes, "holes.json");
    ASSERT_FALSE(refused) << column;
    EXPECT_THAT(refused.error().message, HasSubstr("holes.json has no history of its steps to draw"));
  }
  Json report = made(5);
  report["history"]["last_step"][3] = 1;
  EXPECT_FALSE(run_plot_svg(report, "run")) << "back in time";
  for (const char* history : {"null", "7", "{}", R"({"last_step": [1], "share": 3})"}) {
    report["history"] = Json::parse(history);
    EXPECT_FALSE(run_plot_svg(report, "run")) << history;
  }
}

TEST(Range, HasRoundTicks) {
  EXPECT_EQ((Range{0, 149}.step(12)), 20);
  EXPECT_THAT((Range{0, 1}.ticks(5)), ElementsAre(0, testing::DoubleEq(0.2), testing::DoubleEq(0.4),
                                                  testing::DoubleNear(0.6, 1e-12), testing::DoubleEq(0.8), 1));
  const Range wide = Range{0.3, 97}.rounded();
  EXPECT_EQ(wide.low, 0);
  EXPECT_EQ(wide.high, 100);
  const Range none = Range{4, 4}.rounded();
  EXPECT_LT(none.low, 4);
  EXPECT_GT(none.high, 4);
  const std::vector<double> values{NAN, 3, INFINITY, -1};
  EXPECT_EQ(Range::of(values).low, -1);
  EXPECT_EQ(Range::of(values).high, 3);
}

}  // namespace
}  // namespace remuda::cli
