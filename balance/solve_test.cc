#include "balance/solve.h"

#include <functional>
#include <gmock/gmock.h>
#include <limits>
#include <numeric>
#include <rapidcheck/gtest.h>

namespace remuda::balance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> solve(const std::vector<CostLine>& lines, int total, const std::vector<Bounds>& bounds) {
  return solve_min_max(lines, total, bounds);
}

/// The least slowest_s() over all shares within the bounds; infinite when there are none.
double brute_force(const std::vector<CostLine>& lines, int total, const std::vector<Bounds>& bounds) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> shares(lines.size());
  const std::function<void(size_t, int)> place = [&](size_t device, int left) {
    if (device == lines.size()) {
      if (left == 0) best = std::min(best, slowest_s(lines, shares));
      return;
    }
    for (int share = bounds[device].low; share <= std::min(left, bounds[device].high); ++share) {
      shares[device] = share;
      place(device + 1, left - share);
    }
  };
  place(0, total);
  return best;
}

TEST(SolveMinMax, SplitsBySpeed) { EXPECT_THAT(solve({{0, 1}, {0, 3}}, 8, {{}, {}}), ElementsAre(6, 2)); }

TEST(SolveMinMax, CountsFixedCosts) { EXPECT_THAT(solve({{4, 1}, {0, 1}}, 8, {{}, {}}), ElementsAre(2, 6)); }

TEST(SolveMinMax, LeavesOutADeviceWhoseFixedCostIsTooHigh) {
  EXPECT_THAT(solve({{100, 1}, {0, 1}}, 8, {{}, {}}), ElementsAre(0, 8));
  EXPECT_THAT(solve({{100, 1}, {0, 1}}, 8, {{.low = 2}, {}}), ElementsAre(2, 6));
}

TEST(SolveMinMax, RespectsBounds) {
  EXPECT_THAT(solve({{0, 1}, {0, 1}, {0, 1}}, 12, {{0, 2}, {5, 9}, {}}), ElementsAre(2, 5, 5));
  EXPECT_THAT(solve({{0, 1}, {0, 1}}, 12, {{0, 0}, {}}), ElementsAre(0, 12));
}

TEST(SolveMinMax, BreaksTiesByRank) { EXPECT_THAT(solve({{0, 1}, {0, 1}}, 5, {{}, {}}), ElementsAre(3, 2)); }

TEST(SolveMinMax, IsEmptyWhenBoundsLeaveNothing) {
  EXPECT_THAT(solve({{0, 1}, {0, 1}}, 5, {{0, 2}, {0, 2}}), IsEmpty());
  EXPECT_THAT(solve({{0, 1}, {0, 1}}, 5, {{3, 9}, {3, 9}}), IsEmpty());
  EXPECT_THAT(solve({{0, 1}}, 5, {{6, 4}}), IsEmpty());
  EXPECT_THAT(solve({{0, 1}}, 5, {{-1, 9}}), IsEmpty());
}

TEST(SolveMinMax, SolvesTheFactsOfFourDevices) {
  const std::vector<CostLine> lines{{4e-3, .20e-3}, {9e-3, .45e-3}, {14e-3, 1.1e-3}, {6e-3, .30e-3}};
  const auto shares = solve(lines, 96, {{}, {}, {}, {}});
  EXPECT_NEAR(slowest_s(lines, shares), 14.85e-3, 1e-9);
}

TEST(SolveMinMax, TakesTimesThatDoNotGrow) { EXPECT_THAT(solve({{1, 0}, {0, 0}}, 6, {{}, {0, 4}}), ElementsAre(2, 4)); }

TEST(SolveMinMaxDeathTest, RefusesFallingLines) {
  EXPECT_DEATH(solve({{1, -1}}, 6, {{}}), "more samples never take less time");
}

TEST(SlowestS, CountsNothingForADeviceWithoutSamples) {
  const std::vector<CostLine> lines{{100, 1}, {1, 1}};
  EXPECT_DOUBLE_EQ(slowest_s(lines, std::vector<int>{0, 3}), 4);
}

RC_GTEST_PROP(SolveMinMaxProperty, IsOptimal, ()) {
  const int total = *rc::gen::inRange(0, 15);
  const size_t devices = *rc::gen::inRange(1, 5);
  std::vector<CostLine> lines;
  std::vector<Bounds> bounds;
  for (size_t i = 0; i < devices; ++i) {
    lines.push_back({*rc::gen::inRange(0, 30) / 7.0, *rc::gen::inRange(0, 20) / 3.0});
    const int low = *rc::gen::inRange(0, 3);
    bounds.push_back({low, *rc::gen::inRange(low, 20)});
  }
  const double best = brute_force(lines, total, bounds);
  const auto shares = solve_min_max(lines, total, bounds);
  RC_ASSERT(shares.empty() == (best == std::numeric_limits<double>::infinity()));
  if (shares.empty()) return;
  RC_ASSERT(std::accumulate(shares.begin(), shares.end(), 0) == total);
  for (size_t i = 0; i < devices; ++i) RC_ASSERT(shares[i] >= bounds[i].low && shares[i] <= bounds[i].high);
  RC_ASSERT(slowest_s(lines, shares) == best);
}

}  // namespace
}  // namespace remuda::balance
