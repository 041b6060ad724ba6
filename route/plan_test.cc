#include "route/plan.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <rapidcheck/gtest.h>

#include "route/bound.h"
#include "route/testing/networks.h"

namespace remuda::route {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Plan plan_of(Network network) { return plan_all_reduce(std::move(network)).value(); }

double best_seconds(const Plan& plan, double bytes) { return plan.best(bytes).cost.seconds(bytes); }

Algorithm best_algorithm(const Plan& plan, double bytes) { return plan.best(bytes).pattern.algorithm; }

double seconds_of(const Plan& plan, Algorithm algorithm, double bytes) {
  for (const size_t at : plan.by_algorithm(bytes))
    if (plan.candidates[at].pattern.algorithm == algorithm) return plan.candidates[at].cost.seconds(bytes);
  return -1;
}

TEST(PlanAllReduce, TwoDevicesExchangeAll) {
  const Plan plan = plan_of(full_mesh(2, 10, 5));
  EXPECT_EQ(best_algorithm(plan, kMiB), Algorithm::doubling);
  EXPECT_DOUBLE_EQ(best_seconds(plan, kMiB), 5e-6 + kMiB / 10e9);
  EXPECT_EQ(plan.ranges.size(), 1U);
  EXPECT_TRUE(plan.exact);
}

TEST(PlanAllReduce, LittleIsDoubledAndMuchIsHalved) {
  const Plan plan = plan_of(star(8, 10, 5));
  EXPECT_EQ(best_algorithm(plan, 0), Algorithm::doubling);
  EXPECT_EQ(best_algorithm(plan, 100 * kMiB), Algorithm::halving);
  EXPECT_DOUBLE_EQ(best_seconds(plan, 0), 3 * 5e-6);
  EXPECT_DOUBLE_EQ(best_seconds(plan, 100 * kMiB), 6 * 5e-6 + 1.75 * 100 * kMiB / 10e9);
  ASSERT_EQ(plan.ranges.size(), 2U);
  EXPECT_DOUBLE_EQ(plan.ranges[1].from_bytes, (30e-6 - 15e-6) / ((3 - 1.75) / 10e9));
}

TEST(PlanAllReduce, AMeshUsesAllItsLinks) {
  const Plan plan = plan_of(full_mesh(4, 10, 1));
  EXPECT_EQ(best_algorithm(plan, 100 * kMiB), Algorithm::direct);
  EXPECT_DOUBLE_EQ(plan.best(100 * kMiB).cost.s_per_byte, plan.least.s_per_byte);
}

TEST(PlanAllReduce, ARingOfLinksIsUsedInBothDirections) {
  Network network = full_mesh(5, 1, 1);
  for (size_t i = 0; i < 5; ++i) {
    const size_t next = (i + 1) % 5;
    for (Route* route : {&network.routes[i][next], &network.routes[next][i]})
      route->gbps = network.channels[route->channels[0]].gbps = 50;
  }
  const Plan plan = plan_of(network);
  EXPECT_EQ(best_algorithm(plan, 100 * kMiB), Algorithm::two_rings);
  EXPECT_THAT(plan.best(100 * kMiB).order, ElementsAre(0, 1, 2, 3, 4));
}

/// 2 (k-1)/k of the whole goes between k islands, and not 2 (n-1)/n.
TEST(PlanAllReduce, IslandsSpareTheLinkBetweenThem) {
  const Plan plan = plan_of(two_level({4, 4}, 400, 10));
  EXPECT_THAT(best_algorithm(plan, 100 * kMiB), testing::AnyOf(Algorithm::islands, Algorithm::island_rings));
  EXPECT_THAT(plan.best(100 * kMiB).island_sizes, ElementsAre(4, 4));
  EXPECT_LT(best_seconds(plan, 100 * kMiB), 0.65 * seconds_of(plan, Algorithm::ring, 100 * kMiB));
  EXPECT_LT(best_seconds(plan, 100 * kMiB), 1.1 * least_seconds(plan.least, 100 * kMiB));
}

TEST(PlanAllReduce, AnOddDeviceIsAnIsland) {
  const Plan plan = plan_of(machine("nv-3xa6000-nvlink-pair-plus-one"));
  EXPECT_LE(best_seconds(plan, 25 * kMiB), plan.index_ring->seconds(25 * kMiB));
  EXPECT_THAT(plan.candidates, testing::Contains(testing::Field(&Candidate::island_sizes, ElementsAre(2, 1))));
}

/// Islands stay together in whatever order their devices are given, although there are too many orders to try all.
TEST(PlanAllReduce, FindsIslandsOfShuffledDevices) {
  for (const size_t n : {16, 64}) {
    const Network sorted = two_level({n / 2, n / 2}, 400, 10);
    Order shuffled;
    for (size_t i = 0; i < n; ++i) shuffled.push_back((7 * i + 3) % n);
    const Plan plan = plan_of(relabelled(sorted, shuffled));
    for (const Pattern& pattern : {ring(n), two_rings(n)})
      EXPECT_LE(seconds_of(plan, pattern.algorithm, 100 * kMiB),
                Pricer(sorted, pattern).cost(index_order(n))->seconds(100 * kMiB) * (1 + 1e-12))
          << n;
  }
}

/// Measurements scatter: no two pairs have the same speed.
TEST(PlanAllReduce, ScatteredSpeedsMakeNoIslands) {
  const Plan plan = plan_of(scattered_mesh(kMostRanks));
  for (const Candidate& each : plan.candidates) EXPECT_TRUE(each.island_sizes.empty());
  EXPECT_LE(best_seconds(plan, 100 * kMiB), plan.index_ring->seconds(100 * kMiB));
}

TEST(PlanAllReduce, SaysWhatTheOrderGivenWouldTake) {
  // Pairs 0-2, 1-3, 4-5, 6-7: the order given leaves them at every step.
  const Plan plan = plan_of(machine("nv-8gpu-nvlink-pairs-nv12"));
  ASSERT_TRUE(plan.index_ring);
  EXPECT_LT(best_seconds(plan, 100 * kMiB), plan.index_ring->seconds(100 * kMiB));
}

TEST(PlanAllReduce, GoesAroundWhatIsNotKnown) {
  Network network = full_mesh(4, 10);
  network.routes[0][1].gbps = network.routes[1][0].gbps = 0;
  const Plan plan = plan_of(network);
  EXPECT_FALSE(plan.index_ring);
  EXPECT_EQ(plan.least, Cost{});
  for (const Candidate& each : plan.candidates)
    for (const Round& round : rounds_of(plan.network, each))
      for (const Transfer& transfer : round.transfers)
        EXPECT_GT(plan.network.routes[transfer.from][transfer.to].gbps, 0);
}

TEST(PlanAllReduce, RefusesWhatCannotBe) {
  EXPECT_EQ(plan_all_reduce(full_mesh(1, 10)).error().message, "an all-reduce needs two devices or more");
  EXPECT_THAT(plan_all_reduce(star(65, 10)).error().message, HasSubstr("up to 64 devices, these are 65"));
  Network apart = full_mesh(2, 10);
  apart.routes[0][1].gbps = apart.routes[1][0].gbps = 0;
  const Error error = plan_all_reduce(apart).error();
  EXPECT_EQ(error.kind, ErrorKind::usage);
  EXPECT_THAT(error.message, HasSubstr("remuda bench links"));
}

TEST(PlanAllReduce, PlansForAsManyAsItSays) {
  const Plan plan = plan_of(star(kMostRanks, 10));
  EXPECT_FALSE(plan.exact);
  EXPECT_LE(best_seconds(plan, 100 * kMiB), plan.index_ring->seconds(100 * kMiB));
}

/// Hosts on a switch that have a network card each: to send all at once, each rank its part of the sum, is the best
/// there is, and rounds of any other order send not a byte less. That is what comm does over TCP.
TEST(PlanAllReduce, BetweenHostsOnASwitchDirectSendsTheLeast) {
  for (const size_t hosts : {2, 3, 4, 6, 8}) {
    const Plan plan = plan_of(star(hosts, 1.25, 50));
    const auto direct_cost = [&] {
      return std::ranges::find_if(plan.candidates,
                                  [](const Candidate& each) { return each.pattern.algorithm == Algorithm::direct; })
          ->cost;
    }();
    EXPECT_DOUBLE_EQ(direct_cost.s_per_byte, plan.least.s_per_byte);
  }
}

TEST(LimitOf, NamesTheSlowLink) {
  const Plan plan = plan_of(two_level({2, 2}, 400, 10, 1));
  const Candidate& best = plan.best(100 * kMiB);
  const Limit limit = limit_of(plan.network, rounds_of(plan.network, best), 100 * kMiB);
  EXPECT_THAT(plan.network.channels[limit.channel].name, HasSubstr("uplink"));
  EXPECT_GT(limit.link_share, 0.9);
  EXPECT_GT(limit_of(plan.network, rounds_of(plan.network, plan.best(8)), 8).latency_share, 0.9);
}

/// Of links that are alike the shared one tells most.
TEST(LimitOf, PrefersTheLinkThatMostShare) {
  const Plan plan = plan_of(machine("nv-8gpu-pix-phb-sys"));
  const Limit limit = limit_of(plan.network, rounds_of(plan.network, plan.best(100 * kMiB)), 100 * kMiB);
  EXPECT_EQ(plan.network.channels[limit.channel].name, "uplink of the NUMA node of gpu:0-3");
  EXPECT_GT(limit.link_share, 0.9);
}

/// Without peer access both directions go at once, through memory that has room for them.
TEST(PlanAllReduce, StagedDevicesExchangeInOneRound) {
  const Plan plan = plan_of(machine("nv-2x5090-phb-p2p-gns"));
  EXPECT_EQ(rounds_of(plan.network, plan.best(100 * kMiB)).size(), 1U);
}

TEST(Carried, CountsBothDirectionsApart) {
  Network network = full_mesh(2, 10);
  const Plan plan = plan_of(network);
  const auto sums = carried(plan.network, rounds_of(plan.network, plan.best(kMiB)));
  EXPECT_THAT(sums, ElementsAre(1, 1));
}

/// A plan as its own rounds say it, transfer by transfer.
void check_rounds(const Plan& plan, const Candidate& candidate) {
  const size_t n = plan.network.size();
  const auto rounds = rounds_of(plan.network, candidate);
  const auto chunk = [&](double share) {
    return static_cast<size_t>(std::lround(share * static_cast<double>(candidate.pattern.chunks)));
  };
  std::vector sums(n, std::vector(candidate.pattern.chunks, std::vector<int>(n, 0)));
  for (size_t rank = 0; rank < n; ++rank)
    for (auto& each : sums[rank]) each[rank] = 1;
  auto before = sums;
  Cost cost;
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (i == 0 || rounds[i].step != rounds[i - 1].step) before = sums;
    std::map<size_t, double> load;
    for (const Transfer& move : rounds[i].transfers) {
      const Route& route = plan.network.routes[move.from][move.to];
      for (const size_t channel : route.channels) load[channel] += route.gbps;
      for (size_t at = chunk(move.begin); at < chunk(move.end); ++at)
        for (size_t of = 0; of < n; ++of)
          sums[move.to][at][of] = before[move.from][at][of] + (move.adds ? sums[move.to][at][of] : 0);
    }
    for (const auto& [channel, gbps] : load) RC_ASSERT(gbps <= plan.network.channels[channel].gbps * (1 + 1e-9));
    cost += rounds[i].cost;
  }
  RC_ASSERT(is_all_reduced(sums));
  for (const double bytes : {0.0, 1e6}) {
    RC_ASSERT(cost.seconds(bytes) <= candidate.cost.seconds(bytes) * (1 + 1e-9));
    RC_ASSERT(cost.seconds(bytes) >= candidate.cost.seconds(bytes) * (1 - 1e-9));
  }
}

RC_GTEST_PROP(PlanProperty, EveryCandidateReducesAllAndOverloadsNothing, ()) {
  const Plan plan = plan_of(arbitrary_network(*rc::gen::inRange<size_t>(2, 6)));
  for (const Candidate& each : plan.candidates) check_rounds(plan, each);
}

RC_GTEST_PROP(PlanProperty, ItIsBetweenTheLeastAndTheNaive, ()) {
  const Plan plan = plan_of(arbitrary_network(*rc::gen::inRange<size_t>(2, 6)));
  RC_ASSERT(plan.exact);
  for (const double bytes : {0.0, 1.0, 1e3, 1e5, 1e7, 1e10}) {
    const double best = best_seconds(plan, bytes);
    RC_ASSERT(best <= plan.index_ring->seconds(bytes) * (1 + 1e-12));
    RC_ASSERT(best >= least_seconds(plan.least, bytes) * (1 - 1e-12));
    for (const Candidate& each : plan.candidates) RC_ASSERT(best <= each.cost.seconds(bytes) * (1 + 1e-12));
    RC_ASSERT(plan.candidates[plan.by_algorithm(bytes).front()].cost.seconds(bytes) <= best * (1 + 1e-12));
  }
  for (size_t i = 1; i < plan.ranges.size(); ++i) RC_ASSERT(plan.ranges[i].from_bytes >= plan.ranges[i - 1].from_bytes);
}

/// What is planned for recorded machines, at a size of a bucket: never slower than the naive, never faster than the
/// links.
TEST(PlanAllReduce, HoldsOnRecordedMachines) {
  for (const char* name :
       {"nv-dgx1-v100-8gpu-4nic", "nv-8gpu-nvlink-pairs-nv12", "nv-8gpu-pix-phb-sys", "amd-rccl-8xmi100-two-hives-rome",
        "amd-rccl-4xvega20-ring-hive", "nv-mixed-2x5090-3x4090", "nv-2x5090-phb-p2p-gns", "synthetic-8xh200-2xnvl4"}) {
    const Plan plan = plan_of(machine(name));
    EXPECT_TRUE(plan.exact) << name;
    for (const double bytes : {1e3, 1e6, 1e8}) {
      EXPECT_LE(best_seconds(plan, bytes), plan.index_ring->seconds(bytes)) << name;
      EXPECT_GE(best_seconds(plan, bytes), least_seconds(plan.least, bytes)) << name;
    }
    EXPECT_TRUE(is_all_reduced(simulate(plan.best(1e8).pattern))) << name;
  }
}

}  // namespace
}  // namespace remuda::route
