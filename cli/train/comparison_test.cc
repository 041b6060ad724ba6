#include "cli/train/comparison.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Three pairs whose runs make so many samples/s.
Comparison three_pairs(const std::vector<double>& a, const std::vector<double>& b) {
  Comparison comparison{.job = "job.toml", .settings = {"balance.policy=even"}, .runs = runs_of(3, 7)};
  for (ComparedRun& run : comparison.runs)
    run.report = {{"samples_per_s", (run.is_b ? b : a).at(size_t(run.pair))},
                  {"loss_per_epoch", {2.0, 1.0}},
                  {"test_accuracy", run.is_b ? 0.50 : 0.25 + 0.1 * run.pair}};
  return comparison;
}

TEST(Comparison, TakesTurnsSoThatNoWayIsAlwaysFirst) {
  std::string order;
  std::vector<uint64_t> seeds;
  for (const ComparedRun& run : runs_of(4, 7)) {
    order += run.is_b ? 'B' : 'A';
    seeds.push_back(run.seed);
  }
  EXPECT_EQ(order, "ABBAABBA");
  EXPECT_THAT(seeds, ElementsAre(7, 7, 8, 8, 9, 9, 10, 10));
}

TEST(Comparison, SaysHowMuchFasterWhereThatIsSure) {
  const std::string text = comparison_text(three_pairs({100, 110, 120}, {90, 100, 109}));
  EXPECT_THAT(text, HasSubstr("A is job.toml, B the same with balance.policy=even; 3 pairs of runs"));
  EXPECT_THAT(text, HasSubstr("\nsamples/s          110     99.7  -9.4 %  -10.7 % to -8.2 %  real\n"));
  EXPECT_THAT(text, HasSubstr("\nB is slower: with 95 % confidence it makes 8.2 % to 10.7 % fewer samples/s.\n"));
  EXPECT_THAT(comparison_text(three_pairs({90, 100, 109}, {100, 110, 120})), HasSubstr("\nB is faster: with 95 % "));
}

TEST(Comparison, SaysSoWhereTheDifferenceMayBeChance) {
  const std::string text = comparison_text(three_pairs({100, 110, 120}, {90, 120, 118}));
  EXPECT_THAT(text, HasSubstr("not sure\n"));
  EXPECT_THAT(text, HasSubstr("Whether B is faster or slower is not sure: with 95 % confidence it makes between\n"
                              "22.2 % fewer and 25.5 % more samples/s."));
}

TEST(Comparison, TellsWhatIsTheSameFromWhatDiffers) {
  const std::string text = comparison_text(three_pairs({100, 110, 120}, {90, 100, 109}));
  EXPECT_THAT(text, HasSubstr("\ntraining loss   1.0000   1.0000   0.0 %  0.0 % to 0.0 %     the same\n"));
  EXPECT_THAT(text, Not(HasSubstr("test loss"))) << "no run has one";
}

TEST(Comparison, CountsOnlyWholePairs) {
  Comparison cut = three_pairs({100, 110, 120}, {90, 100, 109});
  cut.runs[5].report = nullptr;  // the third pair is A B
  cut.stopped = true;
  EXPECT_THAT(comparison_text(cut), HasSubstr("2 pairs of runs"));
  const Json json = to_json(cut);
  EXPECT_EQ(json["pairs"], 2);
  EXPECT_EQ(json["stopped"], true);
  EXPECT_EQ(json["runs"].size(), 5u);
  EXPECT_EQ(json["differences"]["samples_per_s"]["a"], 105);
  cut.runs[3].report = nullptr;
  EXPECT_THAT(comparison_text(cut), HasSubstr("There is one pair of which both runs were made"));
  EXPECT_TRUE(to_json(cut)["differences"].empty());
}

TEST(Comparison, SaysThatShortRunsHaveNoSpeed) {
  Comparison runs = three_pairs({1, 2, 3}, {1, 2, 3});
  for (ComparedRun& run : runs.runs) run.report.erase("samples_per_s");
  EXPECT_THAT(comparison_text(runs), HasSubstr("The runs have too few steps to measure samples/s"));
}

TEST(Comparison, AsJsonHasTheIntervalAndEachReport) {
  const Json json = to_json(three_pairs({100, 110, 120}, {90, 100, 109}));
  EXPECT_EQ(json["compared"], Json({"balance.policy=even"}));
  EXPECT_EQ(json["runs"][2]["way"], "B");
  EXPECT_EQ(json["runs"][2]["seed"], 8);
  EXPECT_EQ(json["runs"][2]["report"]["samples_per_s"], 100);
  const Json& speed = json["differences"]["samples_per_s"];
  EXPECT_EQ(speed["is_real"], true);
  EXPECT_NEAR(speed["difference"], std::cbrt(0.9 * 100 / 110 * 109 / 120) - 1, 1e-9);
  EXPECT_NEAR(speed["low"], -0.1067, 1e-4);
  EXPECT_EQ(json["differences"]["loss_per_epoch"]["is_real"], false);
  EXPECT_EQ(json["differences"]["test_accuracy"]["is_real"], false);
}

}  // namespace
}  // namespace remuda::cli
