#include "cli/train/report.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace remuda::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Json run(double share, double efficiency) {
  return {{"devices",
           {{{"id", "cpu:0"}, {"slowdown", 1.0}, {"share", share}, {"compute_s", 9.0}, {"wait_s", 1.0}},
            {{"id", "cpu:1"}, {"slowdown", 3.0}, {"share", 1 - share}, {"compute_s", 0.0}, {"wait_s", 0.0}}}},
          {"efficiency", efficiency},
          {"balance", {{"policy", "auto"}}},
          {"loss_per_epoch", {0.5, 0.25}},
          {"steps", 20}};
}

std::vector<size_t> line_lengths(const std::string& text) {
  std::vector<size_t> lengths;
  for (const std::string& line : split(text, '\n')) lengths.push_back(line.size());
  return lengths;
}

TEST(Report, ComparesRunsRowByRow) {
  const std::string text = comparison_text({"one", "two"}, {run(0.75, 0.971), run(0.5, 0.49)});
  EXPECT_THAT(text, HasSubstr("one"));
  EXPECT_THAT(text, ContainsRegex("share of cpu:0 +75.0 % +50.0 %"));
  EXPECT_THAT(text, ContainsRegex("waiting, cpu:0 +10.0 % +10.0 %"));
  EXPECT_THAT(text, ContainsRegex("efficiency +0.971 +0.490"));
  EXPECT_THAT(text, ContainsRegex("last training loss +0.2500 +0.2500"));
}

TEST(Report, LeavesOutWhatNoRunHas) {
  const std::string text = comparison_text({"one"}, {run(0.75, 0.971)});
  EXPECT_THAT(text, Not(HasSubstr("test accuracy")));
  EXPECT_THAT(text, Not(HasSubstr("waiting, cpu:1")));
}

TEST(Report, RunsOfUnlikeSizeStandTogether) {
  Json small = run(1, 1);
  small["devices"].erase(1);
  const std::string text = comparison_text({"two devices", "one"}, {run(0.75, 0.9), small});
  EXPECT_THAT(text, ContainsRegex("share of cpu:1.* +25.0 % +-"));
}

TEST(Report, MatchesDevicesByIdAndNotByPosition) {
  Json turned = run(0.6, 0.9);
  std::swap(turned["devices"][0], turned["devices"][1]);
  Json other = run(0.5, 0.9);
  other["devices"][0]["id"] = "cpu:7";
  const std::string text = comparison_text({"one", "turned", "other"}, {run(0.75, 0.9), turned, other});
  EXPECT_THAT(text, ContainsRegex("share of cpu:0 +75.0 % +60.0 % +-"));
  EXPECT_THAT(text, ContainsRegex("share of cpu:1 .slowed 3.0x. +25.0 % +40.0 % +50.0 %"));
  EXPECT_THAT(text, ContainsRegex("share of cpu:7 +- +- +50.0 %"));
}

TEST(Report, TellsRanksOnOneDeviceApart) {
  Json shared = run(0.75, 0.6);
  shared["devices"][1]["id"] = "cpu:0";
  shared["balance_efficiency"] = 0.97;
  const std::string text = comparison_text({"one", "shared"}, {run(0.5, 0.9), shared});
  EXPECT_THAT(text, ContainsRegex("share of cpu:0 +50.0 % +-"));
  EXPECT_THAT(text, ContainsRegex("share of cpu:0 #1 +- +75.0 %"));
  EXPECT_THAT(text, ContainsRegex("share of cpu:0 #2 .slowed 3.0x. +- +25.0 %"));
  EXPECT_THAT(text, HasSubstr("shared: slower than the sum of the devices alone (60 % of it): ranks on one\n"
                              "device share it"));
}

TEST(Report, HoldsThePeakOfMemoryAgainstWhatWasPredicted) {
  Json one = run(0.75, 0.9), two = run(0.5, 0.9);
  one["devices"][0]["memory"] = {{"peak_bytes", 3 << 20}, {"predicted_peak_bytes", 4 << 20}};
  two["devices"][0]["memory"] = {{"missing", "why"}};
  two["oom_steps"] = 3;
  const std::string text = comparison_text({"one", "two"}, {one, two});
  EXPECT_THAT(text, ContainsRegex("memory, cpu:0 +3.0 MiB +-"));
  EXPECT_THAT(text, ContainsRegex("predicted, cpu:0 +4.0 MiB +-"));
  EXPECT_THAT(text, ContainsRegex("repeated steps +- +3"));
  EXPECT_THAT(text, Not(HasSubstr("memory, cpu:1")));
}

TEST(Report, ShowsASlowdownThatDiffersInARowOfItsOwn) {
  Json quick = run(0.5, 0.9);
  quick["devices"][1]["slowdown"] = 1.0;
  const std::string text = comparison_text({"one", "two"}, {run(0.75, 0.9), quick});
  EXPECT_THAT(text, ContainsRegex("slowdown of cpu:1 +3.0 +1.0"));
  EXPECT_THAT(text, ContainsRegex("share of cpu:1 +25.0 % +50.0 %"));
}

TEST(Report, SaysWhichKeysDifferOtherThanTheDevices) {
  Json one = run(0.75, 0.9), two = run(0.5, 0.9);
  one["job"] = {{"train.global_batch", "96"}, {"train.seed", "1"}, {"balance.policy", "auto"}};
  two["job"] = {{"train.global_batch", "48"}, {"balance.policy", "auto"}};
  const std::string text = comparison_text({"a", "b"}, {one, two});
  EXPECT_THAT(text, HasSubstr("\ntrain.global_batch: a 96, b 48\ntrain.seed: a 1, b not set\n"));
  EXPECT_THAT(text, Not(HasSubstr("policy:")));
  EXPECT_THAT(text, Not(HasSubstr("device:")));
  EXPECT_THAT(text, HasSubstr("do not compare"));
}

TEST(Report, LeavesNothingATerminalObeys) {
  const std::string wild = "\x1b[2J\u202e\nx";
  Json one = run(0.75, 0.5), two = run(0.5, 0.5);
  one["devices"][0]["id"] = one["balance"]["policy"] = one["transport"] = wild;
  one["job"] = {{"model.path", wild}, {wild, "1"}};
  two["job"] = {{"model.path", "b"}};
  const std::string text = comparison_text({"one", "two"}, {one, two});
  EXPECT_THAT(text, HasSubstr("model.path: one ?[2J??x, two b"));
  EXPECT_THAT(text, HasSubstr("?[2J??x: one 1, two not set"));
  EXPECT_THAT(split(text, '\n'),
              Each(testing::ResultOf([](const std::string& line) { return printable(line) == line; }, true)));
  EXPECT_THAT(text, Not(HasSubstr("\nx")));
}

TEST(Report, ComparesLossesOfRunsThatDifferInTheirSplitOnly) {
  Json one = run(0.75, 0.9), two = run(0.5, 0.9);
  one["job"] = {{"train.seed", "1"}, {"balance.policy", "auto"}, {"balance.state_shares", ""}, {"output.weights", "a"}};
  two["job"] = {{"train.seed", "1"},     {"balance.policy", "even"},       {"balance.state_shares", "[3, 1]"},
                {"output.weights", "b"}, {"memory.parameters", "sharded"}, {"train.streams", "1"}};
  const std::string text = comparison_text({"a", "b"}, {one, two});
  EXPECT_THAT(text, HasSubstr("\nbalance.policy: a auto, b even\nbalance.state_shares: a not set, b [3, 1]\n"));
  EXPECT_THAT(text, Not(HasSubstr("do not compare")));
}

TEST(Report, DoesNotCompareWhatRunsOfUnlikeLengthLearned) {
  Json shorter = run(0.5, 0.9);
  shorter["steps"] = 8;
  shorter["stopped"] = true;
  const std::string text = comparison_text({"a", "b"}, {run(0.75, 0.9), shorter});
  EXPECT_THAT(text, Not(HasSubstr("does not change what is learned")));
  EXPECT_THAT(text, HasSubstr("steps: a 20, b 8\n"));
  EXPECT_THAT(text, HasSubstr("b was stopped early, after step 8\n"));
  EXPECT_THAT(text, HasSubstr("Losses and accuracies of these runs do not compare"));
}

TEST(Report, ExplainsALowEfficiencyAndSaysWhatHeldEachRunBack) {
  Json loaded = run(0.75, 0.6), uneven = run(0.5, 0.5), good = run(0.75, 0.95);
  uneven["devices"][0].update({{"samples", 100}, {"compute_s", 3.0}, {"wait_s", 7.0}});
  uneven["devices"][1].update({{"samples", 100}, {"compute_s", 10.0}, {"wait_s", 0.0}});
  loaded["balance_efficiency"] = 0.97;
  uneven["balance_efficiency"] = 0.62;
  uneven["balance"]["policy"] = "even";
  good["balance_efficiency"] = 0.97;
  EXPECT_THAT(comparison_text({"a"}, {loaded}), HasSubstr("\nslower than the sum of the devices alone (60 % of it)"));
  const std::string text = comparison_text({"a", "b"}, {loaded, uneven});
  EXPECT_THAT(text, HasSubstr("\na: slower than the sum of the devices alone (60 % of it)"));
  EXPECT_THAT(text, HasSubstr("\nb: Imbalance took 54 % of each step: cpu:0 waited for others 70 %"));
  EXPECT_THAT(comparison_text({"a"}, {good}), Not(HasSubstr("of the devices alone")));
}

TEST(Report, FitsIn80ColumnsWithAnyNumberOfRuns) {
  for (size_t runs = 1; runs <= 9; ++runs) {
    const std::vector<std::string> names(runs, "nightly/balanced");
    const std::string text = comparison_text(names, std::vector(runs, run(0.75, 0.9)));
    EXPECT_THAT(line_lengths(text), Each(testing::Le(80u))) << text;
    size_t shown = 0;
    for (size_t at = text.find("75.0 %"); at != std::string::npos; at = text.find("75.0 %", at + 1)) ++shown;
    EXPECT_EQ(shown, runs) << text;
  }
}

TEST(Report, SaysWhatRowsMeanWhereThereIsRoom) {
  EXPECT_THAT(comparison_text({"balanced", "even"}, {run(0.75, 0.9), run(0.5, 0.9)}),
              HasSubstr("samples/s over ideal"));
}

TEST(ShortNames, HaveAsMuchOfThePathAsTellsThemApart) {
  EXPECT_THAT(short_names({"out/a.json", "out/b.json"}), ElementsAre("a", "b"));
  EXPECT_THAT(short_names({"mon/report.json", "tue/report.json"}), ElementsAre("mon/report", "tue/report"));
  EXPECT_THAT(short_names({"mon/x/report.json", "tue/x/report.json"}), ElementsAre("mon/x/report", "tue/x/report"));
  EXPECT_THAT(short_names({"report.json", "tue/report.json"}), ElementsAre("report", "tue/report"));
  EXPECT_THAT(short_names({"./report.json"}), ElementsAre("report"));
  EXPECT_THAT(short_names({"a.json", "a.json"}), ElementsAre("a.json", "a.json"));
  EXPECT_THAT(short_names({"a.old", "a.new"}), ElementsAre("a.old", "a.new"));
}

}  // namespace
}  // namespace remuda::cli
