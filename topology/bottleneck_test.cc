#include "topology/bottleneck.h"

#include <algorithm>
#include <bit>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <rapidcheck/gtest.h>

namespace remuda::topology {
namespace {

using testing::ElementsAre;
using Mask = RingTable::Mask;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Speeds uniform(size_t n, double gbps) { return Speeds(n, std::vector<double>(n, gbps)); }

void join(Speeds& speeds, size_t a, size_t b, double gbps) { speeds[a][b] = speeds[b][a] = gbps; }

double slowest_on(const Speeds& speeds, const std::vector<size_t>& order) {
  double slowest = kInfinity;
  for (size_t i = 0; i < order.size(); ++i)
    slowest = std::min(slowest, speeds[order[i]][order[(i + 1) % order.size()]]);
  return slowest;
}

double best_ring_by_trying_all(const Speeds& speeds, Mask mask) {
  std::vector<size_t> order;
  for (size_t i = 0; i < speeds.size(); ++i)
    if (mask >> i & 1) order.push_back(i);
  if (order.size() < 2) return kInfinity;
  double best = 0;
  do best = std::max(best, slowest_on(speeds, order));
  while (std::next_permutation(order.begin() + 1, order.end()));
  return best;
}

/// Of each set: by paths from its first device, one set and end at a time.
std::vector<double> best_rings_set_by_set(const Speeds& speeds) {
  const size_t n = speeds.size();
  std::vector<std::vector<double>> paths(size_t{1} << n, std::vector<double>(n, 0));
  std::vector<double> rings(paths.size(), kInfinity);
  for (Mask mask = 1; mask < paths.size(); ++mask) {
    const auto first = static_cast<size_t>(std::countr_zero(mask));
    const auto reach = [&](Mask by, size_t to) {
      double best = 0;
      for (size_t end = 0; end < n; ++end)
        if (end != to) best = std::max(best, std::min(paths[by][end], speeds[end][to]));
      return best;
    };
    if (std::popcount(mask) == 1) {
      paths[mask][first] = kInfinity;
      continue;
    }
    for (size_t end = first + 1; end < n; ++end)
      if (mask >> end & 1) paths[mask][end] = reach(mask ^ Mask{1} << end, end);
    rings[mask] = reach(mask, first);
  }
  return rings;
}

/// The fastest threshold whose links still join everything.
double best_tree_by_thresholds(const Speeds& speeds) {
  double best = 0;
  for (const auto& row : speeds)
    for (const double threshold : row) {
      std::vector<bool> seen(speeds.size());
      std::vector<size_t> open{0};
      while (!open.empty()) {
        const size_t at = open.back();
        open.pop_back();
        if (seen[at]) continue;
        seen[at] = true;
        for (size_t i = 0; i < speeds.size(); ++i)
          if (i != at && speeds[at][i] >= threshold && speeds[at][i] > 0) open.push_back(i);
      }
      if (std::count(seen.begin(), seen.end(), true) == std::ptrdiff_t(speeds.size())) best = std::max(best, threshold);
    }
  return best;
}

Speeds arbitrary_speeds(size_t n) {
  const std::vector<std::vector<double>> palettes{{0, 10, 25, 50}, {10, 14, 16, 18, 24}, {0, 0, 0, 1}, {7}};
  const std::vector<double> gbps = *rc::gen::elementOf(palettes);
  Speeds speeds(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) join(speeds, i, j, *rc::gen::elementOf(gbps));
  return speeds;
}

TEST(RingTable, AsInTheHeader) {
  const RingTable rings({{0, 50, 10}, {50, 0, 10}, {10, 10, 0}});
  const double of_first_two = rings.gbps(0b011);
  const double of_all = rings.gbps(0b111);
  EXPECT_EQ(of_first_two, 50);
  EXPECT_EQ(of_all, 10);
}

TEST(RingTable, ASmallSetHasItsLinkOrNone) {
  Speeds speeds = uniform(3, 25);
  join(speeds, 0, 1, 10);
  const RingTable table(speeds);
  EXPECT_EQ(table.gbps(0), kInfinity);
  EXPECT_EQ(table.gbps(0b100), kInfinity);
  EXPECT_EQ(table.gbps(0b011), 10);
  EXPECT_EQ(table.gbps(0b110), 25);
  EXPECT_FALSE(table.ring(0b100));
  const auto pair = table.ring(0b011);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->bottleneck.gbps, 10);
  EXPECT_THAT(pair->order, ElementsAre(0, 1));
}

TEST(RingTable, GoesAroundASlowLink) {
  Speeds speeds = uniform(4, 25);
  join(speeds, 0, 1, 10);
  join(speeds, 2, 3, 10);
  const auto ring = RingTable(speeds).ring(0b1111);
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->bottleneck.gbps, 25);
  EXPECT_EQ(slowest_on(speeds, ring->order), 25);
  EXPECT_EQ(RingTable(speeds).gbps(0b0111), 10);
}

TEST(RingTable, ADeviceWithOneKnownLinkIsOnNoRing) {
  Speeds speeds = uniform(4, 25);
  join(speeds, 0, 1, 0);
  join(speeds, 0, 2, 0);
  const RingTable table(speeds);
  EXPECT_EQ(table.gbps(0b1111), 0);
  EXPECT_FALSE(table.ring(0b1111));
  EXPECT_EQ(table.gbps(0b1110), 25);
}

TEST(RingTable, LeavesOutWhatIsTooLarge) {
  const RingTable table(uniform(5, 25), 3);
  EXPECT_EQ(table.gbps(0b10110), 25);
  EXPECT_TRUE(table.ring(0b10110));
  EXPECT_EQ(table.gbps(0b11110), 0);
  EXPECT_FALSE(table.ring(0b11110));
}

TEST(RingTable, LikeLinksGiveTheOrderOfTheDevices) {
  const auto ring = RingTable(uniform(16, 450)).ring(0xFFFF);
  ASSERT_TRUE(ring);
  std::vector<size_t> expected(16);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(ring->order, expected);
  EXPECT_EQ(ring->bottleneck.gbps, 450);
}

TEST(RingTable, HasRoomForAllDifferentSpeeds) {
  Speeds speeds = uniform(16, 0);
  double gbps = 0;
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < i; ++j) join(speeds, i, j, ++gbps);
  const RingTable table(speeds);
  const auto ring = table.ring(0xFFFF);
  ASSERT_TRUE(ring);
  EXPECT_EQ(slowest_on(speeds, ring->order), table.gbps(0xFFFF));
  EXPECT_EQ(table.gbps(0xC000), 120);
}

TEST(RingTable, TakesNoMoreThanItCan) { EXPECT_DEATH(RingTable(uniform(17, 1)), "bounded number of devices"); }

TEST(RingTable, AMachineWithoutDevicesIsFine) { EXPECT_EQ(RingTable({}).gbps(0), kInfinity); }

RC_GTEST_PROP(RingTableProperty, EqualsTryingAllOrders, ()) {
  const size_t n = *rc::gen::inRange<size_t>(1, 8);
  const Speeds speeds = arbitrary_speeds(n);
  const RingTable table(speeds);
  for (Mask mask = 0; mask < Mask{1} << n; ++mask) RC_ASSERT(table.gbps(mask) == best_ring_by_trying_all(speeds, mask));
}

RC_GTEST_PROP(RingTableProperty, EqualsWorkingSetBySet, ()) {
  const size_t n = *rc::gen::inRange<size_t>(1, 13), largest = *rc::gen::inRange<size_t>(2, 14);
  const Speeds speeds = arbitrary_speeds(n);
  const RingTable table(speeds, largest);
  const std::vector<double> expected = best_rings_set_by_set(speeds);
  for (Mask mask = 0; mask < Mask{1} << n; ++mask)
    RC_ASSERT(table.gbps(mask) == (static_cast<size_t>(std::popcount(mask)) <= largest ? expected[mask] : 0));
}

TEST(RingTable, EqualsWorkingSetBySetOnAFullMachine) {
  Speeds speeds = uniform(16, 0);
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < i; ++j) join(speeds, i, j, static_cast<double>((i * 7 + j * 13 + i * j) % 29));
  const RingTable table(speeds);
  const std::vector<double> expected = best_rings_set_by_set(speeds);
  for (Mask mask = 0; mask <= 0xFFFF; ++mask) ASSERT_EQ(table.gbps(mask), expected[mask]) << mask;
}

RC_GTEST_PROP(RingTableProperty, TheRingItShowsIsAsFastAsItSays, ()) {
  const size_t n = *rc::gen::inRange<size_t>(2, 13);
  const Speeds speeds = arbitrary_speeds(n);
  const RingTable table(speeds);
  const Mask mask = *rc::gen::inRange<Mask>(0, Mask{1} << n);
  const auto ring = table.ring(mask);
  RC_ASSERT(ring.has_value() == (std::popcount(mask) > 1 && table.gbps(mask) > 0));
  if (!ring) return;
  Mask visited = 0;
  for (const size_t device : ring->order) visited |= Mask{1} << device;
  RC_ASSERT(visited == mask);
  RC_ASSERT(ring->order.size() == size_t(std::popcount(mask)));
  RC_ASSERT(slowest_on(speeds, ring->order) == table.gbps(mask));
  RC_ASSERT(ring->bottleneck.gbps == table.gbps(mask));
  RC_ASSERT(speeds[ring->bottleneck.a][ring->bottleneck.b] == table.gbps(mask));
  RC_ASSERT(ring->bottleneck.a < ring->bottleneck.b);
}

TEST(BestTree, NamesItsSlowestLink) {
  Speeds speeds = uniform(4, 10);
  join(speeds, 0, 1, 300);
  join(speeds, 2, 3, 300);
  join(speeds, 1, 2, 12);
  const auto tree = best_tree(speeds);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->gbps, 12);
  EXPECT_EQ(tree->a, 1U);
  EXPECT_EQ(tree->b, 2U);
}

TEST(BestTree, NeedsTwoDevicesThatAreJoined) {
  EXPECT_FALSE(best_tree({}));
  EXPECT_FALSE(best_tree(uniform(1, 25)));
  EXPECT_FALSE(best_tree(uniform(3, 0)));
}

RC_GTEST_PROP(BestTreeProperty, EqualsTryingAllThresholds, ()) {
  const Speeds speeds = arbitrary_speeds(*rc::gen::inRange<size_t>(2, 12));
  const auto tree = best_tree(speeds);
  RC_ASSERT((tree ? tree->gbps : 0) == best_tree_by_thresholds(speeds));
  if (tree) RC_ASSERT(speeds[tree->a][tree->b] == tree->gbps);
}

RC_GTEST_PROP(BestTreeProperty, IsNeverSlowerThanTheRing, ()) {
  const size_t n = *rc::gen::inRange<size_t>(2, 11);
  const Speeds speeds = arbitrary_speeds(n);
  const double ring = RingTable(speeds).gbps((Mask{1} << n) - 1);
  const auto tree = best_tree(speeds);
  RC_ASSERT((tree ? tree->gbps : 0) >= ring);
}

}  // namespace
}  // namespace remuda::topology
