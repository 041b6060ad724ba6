#include "probe/cpu/split.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <numeric>

namespace remuda::probe::cpu {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kGiB = 1 << 30;

/// Nodes with the given numbers of cores; the hardware threads of a core are numbered as Linux does: all first
/// threads, then all second ones.
std::vector<Node> machine(const std::vector<int>& cores_of_nodes, int threads_per_core = 1) {
  const int total = std::accumulate(cores_of_nodes.begin(), cores_of_nodes.end(), 0);
  std::vector<Node> nodes;
  int next = 0;
  for (const int cores : cores_of_nodes) {
    Node node{static_cast<int>(nodes.size()), 8 * kGiB, {}};
    for (int c = 0; c < cores; ++c, ++next) {
      Core core;
      for (int t = 0; t < threads_per_core; ++t) core.push_back(next + t * total);
      node.cores.push_back(core);
    }
    nodes.push_back(node);
  }
  return nodes;
}

std::vector<std::vector<int>> pus(const Result<std::vector<CoreSet>>& sets) {
  std::vector<std::vector<int>> all;
  for (const CoreSet& set : sets.value()) all.push_back(set.pus);
  return all;
}

std::vector<size_t> sizes(const Result<std::vector<CoreSet>>& sets) {
  std::vector<size_t> all;
  for (const CoreSet& set : sets.value()) all.push_back(set.pus.size());
  return all;
}

TEST(SplitCores, MakesOneSetPerNodeByDefault) {
  EXPECT_THAT(pus(split_cores(machine({2, 2}), 0)), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(pus(split_cores(machine({1, 3}), 0)), ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3)));
}

TEST(SplitCores, KeepsTheThreadsOfACoreTogether) {
  EXPECT_THAT(pus(split_cores(machine({4}, 2), 2)), ElementsAre(ElementsAre(0, 1, 4, 5), ElementsAre(2, 3, 6, 7)));
}

TEST(SplitCores, GivesTheFirstSetsTheCoreThatIsLeft) {
  EXPECT_THAT(sizes(split_cores(machine({7}), 3)), ElementsAre(3, 2, 2));
}

TEST(SplitCores, StaysWithinNodesForAMultipleOfThem) {
  const auto sets = split_cores(machine({4, 4}), 4);
  EXPECT_THAT(sizes(sets), Each(2u));
  for (const CoreSet& set : *sets) EXPECT_EQ(set.numa_nodes.size(), 1u);
}

TEST(SplitCores, GivesUnlikeNodesSetsInProportion) {
  EXPECT_THAT(sizes(split_cores(machine({2, 6}), 4)), Each(2u));
  EXPECT_THAT(sizes(split_cores(machine({1, 7}), 4)), ElementsAre(1, 3, 2, 2));
  EXPECT_THAT(sizes(split_cores(machine({1, 7}), 8)), Each(1u));
}

TEST(SplitCores, SpansNodesWhenTheNumberIsNoMultiple) {
  const auto sets = split_cores(machine({4, 4}), 3);
  EXPECT_THAT(pus(sets), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6, 7)));
  EXPECT_THAT((*sets)[1].numa_nodes, ElementsAre(0, 1));
}

TEST(SplitCores, JoinsNodesWhenThereAreFewerSets) {
  const auto sets = split_cores(machine({2, 2, 2, 2}), 2);
  EXPECT_THAT(pus(sets), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT((*sets)[1].numa_nodes, ElementsAre(2, 3));
}

TEST(SplitCores, NamesTheKernelsNodes) {
  auto nodes = machine({1, 1});
  nodes[0].numa_node = 2, nodes[1].numa_node = 8;
  const auto sets = split_cores(nodes, 0);
  EXPECT_THAT((*sets)[0].numa_nodes, ElementsAre(2));
  EXPECT_THAT((*sets)[1].numa_nodes, ElementsAre(8));
}

TEST(SplitCores, SharesMemoryInProportionToCores) {
  const auto sets = split_cores(machine({3}), 2);
  EXPECT_EQ((*sets)[0].memory_bytes, (8 * kGiB * 2 + 1) / 3);
  EXPECT_EQ((*sets)[1].memory_bytes, (8 * kGiB + 1) / 3);
  EXPECT_EQ((*split_cores(machine({4, 2}), 1))[0].memory_bytes, 16 * kGiB);
}

TEST(SplitCores, KnowsNoMemoryWhereOneNodesIsUnknown) {
  auto nodes = machine({2, 2});
  nodes[1].memory_bytes.reset();
  const auto apart = split_cores(nodes, 0);
  EXPECT_EQ((*apart)[0].memory_bytes, 8 * kGiB);
  EXPECT_EQ((*apart)[1].memory_bytes, std::nullopt);
  EXPECT_EQ((*split_cores(nodes, 1))[0].memory_bytes, std::nullopt);
}

TEST(SplitCores, RefusesMoreThanThereAreCoresAndSaysHowMany) {
  const auto sets = split_cores(machine({1, 1}, 2), 3);
  ASSERT_FALSE(sets);
  EXPECT_EQ(sets.error().kind, ErrorKind::usage);
  EXPECT_THAT(sets.error().message, HasSubstr("2 cores, which can be split into at most 2 CPU devices"));
  EXPECT_THAT(split_cores(machine({1}), 999).error().message,
              HasSubstr("1 core, which can be split into at most 1 CPU device"));
  EXPECT_FALSE(split_cores(machine({4}), -1));
}

/// What holds for every machine, whatever the number of sets and of threads per core.
class EveryShape : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  template <typename Check>
  void for_every_split(Check check) {
    const int cores = std::accumulate(GetParam().begin(), GetParam().end(), 0);
    for (const int threads : {1, 2})
      for (int devices = 1; devices <= cores; ++devices) {
        SCOPED_TRACE(fmt::format("{} devices, {} threads per core", devices, threads));
        const auto sets = split_cores(machine(GetParam(), threads), devices);
        ASSERT_TRUE(sets) << sets.error().message;
        ASSERT_EQ(sets->size(), static_cast<size_t>(devices));
        check(*sets, static_cast<size_t>(threads));
      }
  }

  bool is_multiple_of_nodes(const std::vector<CoreSet>& sets) const { return sets.size() % GetParam().size() == 0; }
};

TEST_P(EveryShape, UsesEachCoreOnce) {
  for_every_split([](const std::vector<CoreSet>& sets, size_t) {
    std::vector<int> used;
    for (const CoreSet& set : sets) used.insert(used.end(), set.pus.begin(), set.pus.end());
    std::ranges::sort(used);
    for (size_t pu = 0; pu < used.size(); ++pu) ASSERT_EQ(used[pu], static_cast<int>(pu));
  });
}

TEST_P(EveryShape, SplitsNoCoreAndLeavesNoSetEmpty) {
  for_every_split([](const std::vector<CoreSet>& sets, size_t threads) {
    for (const CoreSet& set : sets) {
      EXPECT_FALSE(set.pus.empty());
      EXPECT_TRUE(std::ranges::is_sorted(set.pus));
      EXPECT_EQ(set.pus.size() % threads, 0u);
    }
  });
}

TEST_P(EveryShape, StaysWithinNodesOrKeepsSizesNearlyTheSame) {
  for_every_split([this](const std::vector<CoreSet>& sets, size_t threads) {
    if (is_multiple_of_nodes(sets)) {
      for (const CoreSet& set : sets) EXPECT_EQ(set.numa_nodes.size(), 1u);
    } else {
      const auto [least, most] = std::ranges::minmax(sizes(sets));
      EXPECT_LE(most - least, threads);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Machines, EveryShape,
                         ::testing::Values(std::vector{1}, std::vector{2}, std::vector{13}, std::vector{4, 4},
                                           std::vector{1, 7}, std::vector{8, 8, 8, 8}, std::vector{3, 1, 5},
                                           std::vector{1, 1, 1, 1, 1, 1, 1, 1}, std::vector{16, 15, 16, 1}));

}  // namespace
}  // namespace remuda::probe::cpu
