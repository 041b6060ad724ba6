#include "snapshot/history.h"

#include <cmath>
#include <gtest/gtest.h>

namespace remuda::snapshot {
namespace {

constexpr double kFrom = 1000;

std::vector<Sample> samples(const std::vector<std::pair<double, Reading<double>>>& busy) {
  std::vector<Sample> all;
  for (const auto& [time_s, reading] : busy) {
    all.push_back({kFrom + time_s, {Status{}, Status{}}});
    all.back().devices[1].busy = reading;
  }
  return all;
}

HistoryQuery query(double seconds, int points) { return {"", "gpu", {"busy"}, kFrom, kFrom + seconds, points}; }

Series busy_of(const std::vector<Sample>& all, double seconds, int points) {
  return history_of(all, 1, query(seconds, points)).measures[0].second;
}

TEST(SnapshotHistory, AStepIsTheMeanOfItsSamples) {
  const auto all = samples({{0, 0.2}, {1, 0.4}, {2, 1.0}, {3, 0.0}});
  EXPECT_EQ(busy_of(all, 4, 2), (Series{(0.2 + 0.4) / 2, 0.5}));
}

TEST(SnapshotHistory, WhatIsMissingIsNotZero) {
  const auto all = samples({{0, 0.2}, {1, Missing{}}, {2, Missing{MissingReason::lost, "gone"}}, {3, 0.6}});
  EXPECT_EQ(busy_of(all, 4, 4), (Series{0.2, std::nullopt, std::nullopt, 0.6}));
}

TEST(SnapshotHistory, BeforeAfterAndInGapsNothingIsKnown) {
  const auto all = samples({{10, 0.5}, {11, 0.5}, {12, 0.5}, {30, 0.5}});
  const Series series = busy_of(all, 40, 40);
  EXPECT_EQ(series[9], std::nullopt) << "before the first";
  EXPECT_EQ(series[12], 0.5);
  EXPECT_EQ(series[20], std::nullopt) << "in a gap";
  EXPECT_EQ(series[31], std::nullopt) << "after the last";
}

TEST(SnapshotHistory, AStepBetweenTwoSamplesHasTheOneBefore) {
  const auto all = samples({{0, 0.2}, {10, 0.4}, {20, 0.6}});
  EXPECT_EQ(busy_of(all, 20, 4), (Series{0.2, 0.2, 0.4, 0.4}));
}

TEST(SnapshotHistory, ThrottledIsByHeatOrPower) {
  std::vector<Sample> all(4);
  for (size_t i = 0; i < 4; ++i) all[i] = {kFrom + static_cast<double>(i), {Status{}}};
  all[0].devices[0].throttle = std::vector<std::string>{"thermal"};
  all[1].devices[0].throttle = std::vector<std::string>{"idle", "application_clocks"};
  all[2].devices[0].throttle = std::vector<std::string>{};
  HistoryQuery asked = query(4, 4);
  asked.measures = {"throttled"};
  EXPECT_EQ(history_of(all, 0, asked).measures[0].second, (Series{1, 0, 0, std::nullopt}));
}

TEST(SnapshotHistory, ItsJson) {
  const auto all = samples({{0, 0.5}, {1, Missing{}}});
  EXPECT_EQ(to_line(to_json(history_of(all, 1, query(2, 2)))),
            R"({"device":"gpu","start_s":1000.0,"step_s":1.0,"measures":{"busy":[0.5,null]}})");
}

TEST(SnapshotHistory, EveryMeasureCanBeAskedFor) {
  HistoryQuery all = query(2, 2);
  all.measures.assign(kMeasures.begin(), kMeasures.end());
  EXPECT_TRUE(check(all));
}

TEST(SnapshotHistory, WrongQueriesAreRefused) {
  const auto wrong = [](auto change) {
    HistoryQuery asked = query(2, 2);
    change(asked);
    return !check(asked);
  };
  EXPECT_FALSE(wrong([](HistoryQuery&) {}));
  EXPECT_TRUE(wrong([](HistoryQuery& asked) { asked.measures = {"password"}; }));
  EXPECT_TRUE(wrong([](HistoryQuery& asked) { asked.measures.clear(); }));
  EXPECT_TRUE(wrong([](HistoryQuery& asked) { asked.measures.assign(kMeasures.size() + 1, "busy"); }));
  EXPECT_TRUE(wrong([](HistoryQuery& asked) { asked.points = 0; }));
  EXPECT_TRUE(wrong([](HistoryQuery& asked) { asked.points = kMostPoints + 1; }));
  EXPECT_TRUE(wrong([](HistoryQuery& asked) { asked.to_s = asked.from_s; }));
  EXPECT_TRUE(wrong([](HistoryQuery& asked) { asked.to_s = NAN; }));
}

}  // namespace
}  // namespace remuda::snapshot
