#include "balance/hindsight.h"

#include <gmock/gmock.h>
#include <numeric>
#include <rapidcheck/gtest.h>

namespace remuda::balance {
namespace {

using ::testing::ElementsAre;

const std::vector<CostLine> kLines{{2e-3, 1e-4}, {2e-3, 3e-4}};
const std::vector<Bounds> kFree{{}, {}};

/// Steps with these shares, in which device i takes `factors[i]` times the seconds of its line.
void add_steps(Hindsight& hindsight, const std::vector<int>& shares, const std::vector<double>& factors,
               int count = 1) {
  std::vector<double> seconds;
  for (size_t i = 0; i < shares.size(); ++i)
    seconds.push_back(shares[i] > 0 ? factors[i] * kLines[i].seconds(shares[i]) : 0);
  for (int i = 0; i < count; ++i) hindsight.add(shares, seconds);
}

TEST(Hindsight, KnowsWhatOtherSharesWouldHaveSaved) {
  Hindsight hindsight;
  add_steps(hindsight, {40, 40}, {1, 1}, 10);
  EXPECT_NEAR(hindsight.gain(kLines, std::vector{40, 40}, std::vector{60, 20}).gain, 1 - 8.0 / 14, 1e-9);
  EXPECT_NEAR(hindsight.gain(kLines, std::vector{60, 20}, std::vector{40, 40}).gain, 1 - 14.0 / 8, 1e-9);
  EXPECT_EQ(hindsight.gain(kLines, std::vector{40, 40}, std::vector{40, 40}).gain, 0);
}

TEST(Hindsight, IsNotDisturbedByWhatSlowsAllDevicesDown) {
  Hindsight calm, restless;
  for (int i = 0; i < 32; ++i) {
    add_steps(calm, {52, 28}, {1, 1});
    const double together = 1 + i % 4;
    add_steps(restless, {52, 28}, {together, together});
  }
  const auto before = calm.gain(kLines, std::vector{52, 28}, std::vector{60, 20});
  const auto after = restless.gain(kLines, std::vector{52, 28}, std::vector{60, 20});
  EXPECT_NEAR(before.gain, after.gain, 1e-9);
  EXPECT_LT(after.error, 0.05);
}

TEST(Hindsight, IsSurerTheMoreStepsAgree) {
  Hindsight few, many, torn;
  add_steps(few, {40, 40}, {1, 1}, 4);
  add_steps(many, {40, 40}, {1, 1}, 32);
  for (int i = 0; i < 32; ++i) add_steps(torn, {40, 40}, {i % 2 ? 3.0 : 0.3, 1.0});
  const auto error = [](const Hindsight& hindsight) {
    return hindsight.gain(kLines, std::vector{40, 40}, std::vector{50, 30}).error;
  };
  EXPECT_LT(error(many), error(few) / 2);
  EXPECT_GT(error(torn), 5 * error(many));
}

TEST(Hindsight, GivesLessToADeviceWithLongTails) {
  Hindsight steady, tailed;
  add_steps(steady, {60, 20}, {1, 1}, 40);
  for (int i = 0; i < 40; ++i) add_steps(tailed, {60, 20}, {1, i % 4 ? 1.0 : 3.0});
  EXPECT_THAT(steady.best(kLines, kFree, {40, 40}), ElementsAre(60, 20));
  EXPECT_GT(tailed.best(kLines, kFree, {40, 40})[0], 62);
}

TEST(Hindsight, KeepsToTheBounds) {
  Hindsight hindsight;
  add_steps(hindsight, {40, 40}, {1, 1}, 10);
  const std::vector<Bounds> bounds{{0, 50}, {1, 80}};
  EXPECT_THAT(hindsight.best(kLines, bounds, {40, 40}), ElementsAre(50, 30));
}

TEST(Hindsight, ForgetsOldSteps) {
  Hindsight hindsight;
  add_steps(hindsight, {40, 40}, {9, 1}, 100);
  EXPECT_EQ(hindsight.steps(), 64);
  add_steps(hindsight, {40, 40}, {1, 1}, 5);
  hindsight.keep(5);
  EXPECT_EQ(hindsight.steps(), 5);
  EXPECT_NEAR(hindsight.gain(kLines, std::vector{40, 40}, std::vector{60, 20}).gain, 1 - 8.0 / 14, 1e-9);
  hindsight.keep(9);
  EXPECT_EQ(hindsight.steps(), 5);
}

TEST(Hindsight, ComparesStepsWithUnlikeShares) {
  Hindsight hindsight;
  add_steps(hindsight, {40, 40}, {1, 1}, 5);
  add_steps(hindsight, {70, 10}, {1, 1}, 5);
  add_steps(hindsight, {80, 0}, {1, 1}, 5);
  EXPECT_NEAR(hindsight.gain(kLines, std::vector{40, 40}, std::vector{60, 20}).gain, 1 - 8.0 / 14, 1e-9);
}

RC_GTEST_PROP(HindsightProperty, TheBestIsNotWorseThanTheStartAndKeepsBatchAndBounds, ()) {
  const size_t devices = *rc::gen::inRange(1, 5);
  Hindsight hindsight;
  std::vector<CostLine> lines;
  std::vector<Bounds> bounds;
  std::vector<int> start;
  for (size_t i = 0; i < devices; ++i) {
    lines.push_back({*rc::gen::inRange(0, 30) / 7.0, *rc::gen::inRange(1, 20) / 3.0});
    start.push_back(*rc::gen::inRange(0, 40));
    bounds.push_back({*rc::gen::inRange(0, start[i] + 1), start[i] + *rc::gen::inRange(0, 50)});
  }
  for (int step = *rc::gen::inRange(1, 80); step > 0; --step) {
    std::vector<double> seconds;
    for (size_t i = 0; i < devices; ++i)
      seconds.push_back(start[i] > 0 ? lines[i].seconds(start[i]) * *rc::gen::inRange(1, 50) / 10 : 0);
    hindsight.add(start, seconds);
  }
  const auto best = hindsight.best(lines, bounds, start);
  RC_ASSERT(std::accumulate(best.begin(), best.end(), 0) == std::accumulate(start.begin(), start.end(), 0));
  for (size_t i = 0; i < devices; ++i) RC_ASSERT(best[i] >= bounds[i].low && best[i] <= bounds[i].high);
  if (slowest_s(lines, start) > 0) RC_ASSERT(hindsight.gain(lines, start, best).gain >= -1e-12);
}

}  // namespace
}  // namespace remuda::balance
