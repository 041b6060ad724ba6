#include "route/search.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "route/testing/networks.h"

namespace remuda::route {
namespace {

using testing::ElementsAre;

double best_seconds(const std::vector<Found>& found, double bytes) {
  double best = 1e9;
  for (const Found& each : found) best = std::min(best, each.cost.seconds(bytes));
  return best;
}

/// Over all orders whatever the groups say, step by step.
double best_of_all_orders(const Network& network, const Pattern& pattern, double bytes) {
  Rounds rounds(network);
  Order order = index_order(pattern.ranks);
  double best = 1e9;
  do {
    Cost sum;
    bool is_known = true;
    for (const Step& step : pattern.steps) {
      const auto cost = rounds.divide(step, pattern.chunks, order);
      is_known = is_known && cost;
      if (cost) sum += *cost;
    }
    if (is_known) best = std::min(best, sum.seconds(bytes));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(BestOrders, ARingKeepsToIslands) {
  // Devices 0, 2, 4 and 1, 3, 5 stand together.
  Network network = two_level({3, 3}, 100, 10);
  Network mixed = network;
  const std::vector<size_t> place{0, 3, 1, 4, 2, 5};
  for (size_t a = 0; a < 6; ++a)
    for (size_t b = 0; b < 6; ++b) mixed.routes[a][b] = network.routes[place[a]][place[b]];
  const SearchResult result = best_orders(mixed, ring(6), index_order(6));
  EXPECT_TRUE(result.exact);
  ASSERT_EQ(result.best.size(), 1U);
  EXPECT_THAT(result.best.front().order, ElementsAre(0, 1, 3, 5, 2, 4));
  EXPECT_DOUBLE_EQ(result.best.front().cost.s_per_byte, 10 / (6 * 10e9));
}

TEST(BestOrders, TheGivenOrderStaysWhereNoneIsBetter) {
  const SearchResult result = best_orders(full_mesh(5, 10), ring(5), Order{3, 1, 4, 0, 2});
  ASSERT_EQ(result.best.size(), 1U);
  EXPECT_THAT(result.best.front().order, ElementsAre(3, 1, 4, 0, 2));
}

TEST(BestOrders, AvoidsRoutesThatAreNotKnown) {
  Network network = full_mesh(4, 10);
  for (const auto& [a, b] : std::vector<std::pair<size_t, size_t>>{{0, 1}, {2, 3}})
    network.routes[a][b].gbps = network.routes[b][a].gbps = 0;
  const SearchResult result = best_orders(network, ring(4), index_order(4));
  ASSERT_EQ(result.best.size(), 1U);
  EXPECT_THAT(result.best.front().order, ElementsAre(0, 2, 1, 3));
  EXPECT_TRUE(best_orders(network, direct(4), index_order(4)).best.empty());
}

/// Owners of one part are joined fast across islands: 0, 3 and 4; 1, 2 and 5.
TEST(BestOrders, MembersOfAllIslandsChangePlaces) {
  Network network = full_mesh(6, 1);
  const auto side = [](size_t device) { return device == 0 || device == 3 || device == 4; };
  for (size_t a = 0; a < 6; ++a)
    for (size_t b = 0; b < 6; ++b)
      if (a != b && (a / 2 == b / 2 || side(a) == side(b)))
        network.routes[a][b].gbps = network.channels[network.routes[a][b].channels[0]].gbps = 100;
  const SearchResult result = best_orders(network, islands({2, 2, 2}), index_order(6));
  ASSERT_EQ(result.best.size(), 1U);
  EXPECT_THAT(result.best.front().order, ElementsAre(0, 1, 3, 2, 4, 5));
}

TEST(BestOrders, DescendsWhereThereAreTooManyOrders) {
  // A ring of 12 devices, each joined fast to two others only, given in an order that uses none of these links.
  constexpr size_t kSize = 12;
  Network network = full_mesh(kSize, 1);
  for (size_t i = 0; i < kSize; ++i) {
    const size_t a = i * 5 % kSize, b = (i + 1) * 5 % kSize;
    network.routes[a][b].gbps = network.routes[b][a].gbps = 10;
    for (const auto& way : {network.routes[a][b], network.routes[b][a]}) network.channels[way.channels[0]].gbps = 10;
  }
  Order known;
  for (size_t i = 0; i < kSize; ++i) known.push_back(i * 5 % kSize);
  Order swapped = known, turned = known;
  std::swap(swapped[3], swapped[8]);
  std::reverse(turned.begin() + 2, turned.begin() + 9);
  for (const Order& other : {known, swapped, turned}) {
    const SearchResult result = best_orders(network, ring(kSize), index_order(kSize), {other});
    EXPECT_FALSE(result.exact);
    EXPECT_DOUBLE_EQ(best_seconds(result.best, 1e9), Pricer(network, ring(kSize)).cost(known)->seconds(1e9));
  }
  EXPECT_LE(best_seconds(best_orders(network, ring(kSize), index_order(kSize)).best, 1e9),
            Pricer(network, ring(kSize)).cost(index_order(kSize))->seconds(1e9));
}

TEST(BestOrders, LooksAtNoMoreMovesThanItMay) {
  const Network network = scattered_mesh(64);
  const Pattern pattern = halving(64);
  size_t of_order = 0;
  for (const Step& step : pattern.steps) of_order += step.size();
  const SearchResult result = best_orders(network, pattern, index_order(64));
  EXPECT_GT(result.moves, kMostDescentMoves);
  EXPECT_LE(result.moves, of_order + 2 * (kMostDescentMoves + of_order));
  EXPECT_EQ(best_orders(network, ring(3), index_order(3)).moves, 3 * 3U);  // the order given, then both that there are
}

TEST(BestOrders, OneIsBestForLittleAndAnotherForMuch) {
  Network network = full_mesh(4, 10, 1);
  for (const auto& [a, b] : std::vector<std::pair<size_t, size_t>>{{0, 1}, {1, 2}, {2, 3}, {3, 0}}) {
    network.routes[a][b].gbps = network.routes[b][a].gbps = 20;
    network.routes[a][b].latency_us = network.routes[b][a].latency_us = 50;
    for (const size_t channel : {network.routes[a][b].channels[0], network.routes[b][a].channels[0]})
      network.channels[channel].gbps = 20;
  }
  const SearchResult result = best_orders(network, ring(4), index_order(4));
  ASSERT_EQ(result.best.size(), 1U);  // any ring takes one of the slow beginnings at least
  EXPECT_THAT(result.best.front().order, ElementsAre(0, 1, 2, 3));
  const SearchResult tree_result = best_orders(network, tree(4), index_order(4));
  EXPECT_GT(tree_result.best.size(), 1U);
}

TEST(AddUnlessBeaten, KeepsTheFirstOfEquals) {
  std::vector<Found> best;
  add_unless_beaten({{2, 2}, {0}}, best);
  add_unless_beaten({{2, 2}, {1}}, best);
  add_unless_beaten({{1, 3}, {2}}, best);
  add_unless_beaten({{3, 3}, {3}}, best);
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0].order, Order{0});
  EXPECT_EQ(best[1].order, Order{2});
  add_unless_beaten({{1, 1}, {4}}, best);
  ASSERT_EQ(best.size(), 1U);
  EXPECT_EQ(best[0].order, Order{4});
}

RC_GTEST_PROP(BestOrdersProperty, EqualsTryingAllOrders, ()) {
  const size_t n = *rc::gen::inRange<size_t>(2, 6);
  const Network network = arbitrary_network(n);
  std::vector<Pattern> patterns{ring(n), tree(n), doubling(n), halving(n), direct(n)};
  if (n > 2) patterns.push_back(two_rings(n));
  const Pattern pattern = *rc::gen::elementOf(patterns);
  const SearchResult result = best_orders(network, pattern, index_order(n));
  RC_ASSERT(result.exact);
  for (const double bytes : {0.0, 1e3, 1e5, 1e7, 1e9}) {
    const double all = best_of_all_orders(network, pattern, bytes), found = best_seconds(result.best, bytes);
    RC_ASSERT(found >= all * (1 - 1e-9));
    RC_ASSERT(found <= all * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace remuda::route
