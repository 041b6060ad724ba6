#include "train/run_history.h"

#include <cmath>
#include <gtest/gtest.h>

namespace remuda::train {
namespace {

StepTotals times(double first_s, double second_s) {
  StepTotals totals;
  totals.compute_s = {first_s, second_s};
  totals.wait_s = {1 + std::max(first_s, second_s) - first_s, 1 + std::max(first_s, second_s) - second_s};
  totals.data_s = {0.5, 0.1};
  totals.update_s = {0.25, 0.75};
  return totals;
}

TEST(RunHistory, TellsWhereTheTimeOfAStepWent) {
  RunHistory history;
  EXPECT_TRUE(history.empty());
  history.add(1, 2.5, {30, 10}, times(4, 8));
  const Json json = history.to_json();
  EXPECT_EQ(json["last_step"], Json({1}));
  EXPECT_EQ(json["loss"], Json({2.5}));
  EXPECT_NEAR(json["data_s"][0], 0.3, 1e-12);
  EXPECT_NEAR(json["update_s"][0], 0.5, 1e-12);
  EXPECT_NEAR(json["compute_s"][0], 6 - 0.8, 1e-12) << "the rest of the mean";
  EXPECT_EQ(json["communication_s"][0], 1);
  EXPECT_EQ(json["wait_s"][0], 2) << "the first rank waits four seconds for the other";
  EXPECT_EQ(json["longest_s"][0], 9);
  EXPECT_EQ(json["share"], Json::parse("[[0.75], [0.25]]"));
}

StepTotals times_alone(double seconds) {
  StepTotals totals;
  totals.compute_s = {seconds};
  totals.wait_s = totals.data_s = totals.update_s = {0};
  return totals;
}

TEST(RunHistory, GoesOnWithoutTheStepsThatAreMadeAgainAndTheRankThatIsLost) {
  RunHistory history;
  for (int step = 1; step <= 5; ++step) history.add(step, step, {30, 10}, times(4, 8));
  history.go_on(3, {1});
  history.add(4, 40, {40}, times_alone(2));
  const Json json = history.to_json();
  EXPECT_EQ(json["last_step"], Json({1, 2, 3, 4}));
  EXPECT_EQ(json["loss"], Json({1, 2, 3, 40}));
  EXPECT_EQ(json["share"], Json::parse("[[0.25, 0.25, 0.25, 1]]"));
  history.go_on(0, {0});
  EXPECT_TRUE(history.empty());
}

TEST(RunHistory, APointIsNotDividedButEndsWhereTheRunGoesOn) {
  RunHistory history;
  for (int step = 1; step <= 513; ++step) history.add(step, 1, {3, 1}, times(1, 1));
  ASSERT_EQ(history.to_json()["steps_per_point"], 2);
  history.go_on(501, {0, 1});
  const size_t points = history.to_json()["last_step"].size();
  EXPECT_EQ(history.to_json()["last_step"][points - 2], 500);
  EXPECT_EQ(history.to_json()["last_step"][points - 1], 501) << "of 501 and 502";
  history.add(502, 1, {3, 1}, times(1, 1));
  EXPECT_EQ(history.to_json()["last_step"][points], 502);
}

TEST(RunHistory, OfALongRunKeepsFewPointsAndEveryExtreme) {
  RunHistory history;
  for (int step = 1; step <= 100000; ++step) {
    const bool odd_one = step == 77777;
    history.add(step, odd_one ? 90 : step == 3 ? -5 : 1, {3, 1}, times(1, odd_one ? 40 : 1));
  }
  const Json json = history.to_json();
  const size_t points = json["loss"].size();
  EXPECT_GE(points, 256u);
  EXPECT_LE(points, 512u);
  EXPECT_EQ(json["last_step"][points - 1], 100000);
  EXPECT_EQ(json["last_step"][0], json["steps_per_point"]);
  double high = 0, low = 0, longest_s = 0, steps_s = 0;
  for (size_t i = 0; i < points; ++i) {
    high = std::max(high, double(json["loss_high"][i]));
    low = std::min(low, double(json["loss_low"][i]));
    longest_s = std::max(longest_s, double(json["longest_s"][i]));
    steps_s += double(json["communication_s"][i]);
    EXPECT_EQ(json["share"][0][i], 0.75);
  }
  EXPECT_EQ(high, 90);
  EXPECT_EQ(low, -5);
  EXPECT_EQ(longest_s, 41);
  EXPECT_NEAR(steps_s / double(points), 1, 1e-9) << "means stay means";
  EXPECT_LT(to_line(json).size(), 64u << 10);
}

TEST(RunHistory, OfManyRanksFitsIntoAReport) {
  RunHistory history;
  constexpr size_t kRanks = 256;
  StepTotals third;
  third.compute_s = third.wait_s = third.data_s = third.update_s = std::vector(kRanks, 1.0 / 3);
  for (int step = 1; step <= 512; ++step) history.add(step, 1.0 / 3, std::vector<int>(kRanks, step), third);
  EXPECT_EQ(history.to_json()["share"][7][7], 0.00391);
  EXPECT_EQ(history.to_json()["longest_s"][7], 0.666667);
  EXPECT_LT(to_line(history.to_json()).size(), 2u << 20) << "the launcher takes events of 4 MiB";
}

TEST(RunHistory, ALossThatIsNoNumberIsLeftOut) {
  RunHistory history;
  history.add(1, NAN, {1, 1}, times(1, 1));
  EXPECT_TRUE(history.to_json()["loss"][0].is_null());
  EXPECT_TRUE(history.to_json()["loss_high"][0].is_null());
}

}  // namespace
}  // namespace remuda::train
