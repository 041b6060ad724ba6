#include "route/rounds.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck/gtest.h>

#include "route/testing/networks.h"

namespace remuda::route {
namespace {

using testing::ElementsAre;

/// One chunk for each pair.
Step step_of(const std::vector<std::pair<size_t, size_t>>& pairs) {
  Step step;
  for (const auto& [from, to] : pairs) step.push_back({from, to, 0, 1, true});
  return step;
}

TEST(Rounds, TransfersOnLinksOfTheirOwnGoAtOnce) {
  const Network mesh = full_mesh(4, 10, 2);
  Rounds rounds(mesh);
  const auto cost = rounds.divide(step_of({{0, 1}, {1, 0}, {0, 2}, {3, 2}}), 4, index_order(4));
  EXPECT_THAT(rounds.round_of(), ElementsAre(0, 0, 0, 0));
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->latency_s, 2e-6);
  EXPECT_DOUBLE_EQ(cost->s_per_byte, 0.25 / 10e9);
}

TEST(Rounds, TransfersOnOneLinkGoOneAfterTheOther) {
  const Network network = star(4, 10, 2);
  Rounds rounds(network);
  const auto cost = rounds.divide(step_of({{0, 1}, {2, 1}, {0, 3}, {1, 0}}), 1, index_order(4));
  EXPECT_THAT(rounds.round_of(), ElementsAre(0, 1, 1, 0));
  EXPECT_DOUBLE_EQ(cost->latency_s, 4e-6);
  EXPECT_DOUBLE_EQ(cost->s_per_byte, 2 / 10e9);
}

TEST(Rounds, ALinkCarriesAsManyAsItHasRoomFor) {
  Network network = star(4, 30, 2);
  for (auto& row : network.routes)
    for (Route& route : row) route.gbps = 10;
  Rounds rounds(network);
  rounds.divide(step_of({{0, 1}, {0, 2}, {0, 3}}), 1, index_order(4));
  EXPECT_THAT(rounds.round_of(), ElementsAre(0, 0, 0));
  network.channels[0].gbps = 29;
  Rounds narrow(network);
  narrow.divide(step_of({{0, 1}, {0, 2}, {0, 3}}), 1, index_order(4));
  EXPECT_THAT(narrow.round_of(), ElementsAre(0, 0, 1));
}

TEST(Rounds, AHalfDuplexLinkIsOneChannel) {
  Network network = full_mesh(2, 10);
  network.routes[1][0].channels = network.routes[0][1].channels;
  Rounds rounds(network);
  rounds.divide(step_of({{0, 1}, {1, 0}}), 1, index_order(2));
  EXPECT_THAT(rounds.round_of(), ElementsAre(0, 1));
}

TEST(Rounds, LongTransfersGoTogether) {
  const Network network = star(5, 10, 0);
  Rounds rounds(network);
  const Step step{{0, 1, 0, 1, true}, {0, 2, 0, 4, true}, {3, 1, 0, 4, true}, {3, 4, 0, 1, true}};
  const auto cost = rounds.divide(step, 4, index_order(5));
  EXPECT_THAT(rounds.round_of(), ElementsAre(1, 0, 0, 1));
  EXPECT_DOUBLE_EQ(cost->s_per_byte, 1.25 / 10e9);
}

TEST(Rounds, OnePositionsDeviceIsAnothersElsewhere) {
  Network network = full_mesh(3, 10);
  network.routes[2][0].gbps = 5;
  Rounds rounds(network);
  EXPECT_DOUBLE_EQ(rounds.divide(step_of({{0, 1}}), 1, Order{2, 0, 1})->s_per_byte, 1 / 5e9);
}

TEST(Rounds, NothingGoesWhereNothingIsKnown) {
  Network network = full_mesh(3, 10);
  network.routes[0][1].gbps = 0;
  Rounds rounds(network);
  EXPECT_FALSE(rounds.divide(step_of({{1, 2}, {0, 1}}), 1, index_order(3)));
  EXPECT_TRUE(rounds.divide(step_of({{1, 2}, {0, 2}}), 1, index_order(3)));
}

/// On a switch, all pairs in as many rounds as each has peers: none idles.
TEST(Rounds, AllToAllOnASwitchHasNoMoreRoundsThanPeers) {
  for (size_t n = 2; n < 12; ++n) {
    const Network network = star(n, 10);
    Rounds rounds(network);
    for (const Step& step : direct(n).steps) {
      ASSERT_TRUE(rounds.divide(step, n, index_order(n)));
      EXPECT_EQ(rounds.costs().size(), n - 1);
    }
  }
}

/// The least time of any division, by trying all.
double best_division(const Network& network, const Step& step, std::vector<std::vector<size_t>>& parts, size_t next) {
  const auto route = [&](size_t move) -> const Route& { return network.routes[step[move].from][step[move].to]; };
  if (next == step.size()) {
    double seconds = 0;
    for (const auto& part : parts) {
      double latency = 0, longest = 0;
      for (const size_t move : part) {
        latency = std::max(latency, route(move).latency_us * 1e-6);
        longest = std::max(longest, 1 / (route(move).gbps * 1e9));
      }
      seconds += latency + longest * 1e6;
    }
    return seconds;
  }
  double best = 1e9;
  const auto fits = [&](const std::vector<size_t>& part) {
    std::map<size_t, double> load;
    for (const size_t move : part)
      for (const size_t channel : route(move).channels) load[channel] += route(move).gbps;
    return std::ranges::all_of(
        load, [&](const auto& entry) { return entry.second <= network.channels[entry.first].gbps * (1 + 1e-9); });
  };
  for (size_t part = 0; part <= parts.size(); ++part) {
    const bool is_new = part == parts.size();
    if (is_new) parts.emplace_back();
    parts[part].push_back(next);
    if (fits(parts[part])) best = std::min(best, best_division(network, step, parts, next + 1));
    parts[part].pop_back();
    if (is_new) {
      parts.pop_back();
      break;
    }
  }
  return best;
}

RC_GTEST_PROP(RoundsProperty, NoChannelCarriesMoreThanItCanAndNothingIsLost, ()) {
  const size_t n = *rc::gen::inRange<size_t>(2, 7);
  const Network network = arbitrary_network(n);
  const Pattern pattern = *rc::gen::elementOf(std::vector{ring(n), tree(n), doubling(n), halving(n), direct(n)});
  Rounds rounds(network);
  for (const Step& step : pattern.steps) {
    const auto cost = rounds.divide(step, pattern.chunks, index_order(n));
    RC_ASSERT(cost.has_value());
    RC_ASSERT(rounds.round_of().size() == step.size());
    std::map<std::pair<size_t, size_t>, double> load;
    Cost sum;
    for (const Cost& each : rounds.costs()) sum += each;
    RC_ASSERT(sum == *cost);
    for (size_t i = 0; i < step.size(); ++i) {
      const size_t round = rounds.round_of()[i];
      RC_ASSERT(round < rounds.costs().size());
      const Route& route = network.routes[step[i].from][step[i].to];
      for (const size_t channel : route.channels) load[{round, channel}] += route.gbps;
    }
    for (const auto& [where, gbps] : load) RC_ASSERT(gbps <= network.channels[where.second].gbps * (1 + 1e-9));
  }
}

/// First fit is near the best division: never better, and on these small steps at most half as long again.
RC_GTEST_PROP(RoundsProperty, IsNearTheBestDivision, ()) {
  const size_t n = *rc::gen::inRange<size_t>(2, 5);
  const Network network = arbitrary_network(n);
  const auto pairs =
      *rc::gen::resize(6, rc::gen::container<std::vector<std::pair<size_t, size_t>>>(rc::gen::suchThat(
                              rc::gen::pair(rc::gen::inRange<size_t>(0, n), rc::gen::inRange<size_t>(0, n)),
                              [](const auto& pair) { return pair.first != pair.second; })));
  const Step step = step_of({pairs.begin(), pairs.begin() + std::min<std::ptrdiff_t>(6, std::ssize(pairs))});
  std::vector<std::vector<size_t>> parts;
  const double best = best_division(network, step, parts, 0),
               found = Rounds(network).divide(step, 1, index_order(n))->seconds(1e6);
  RC_ASSERT(found >= best * (1 - 1e-9));
  RC_ASSERT(found <= best * 1.5 + 1e-12);
}

}  // namespace
}  // namespace remuda::route
