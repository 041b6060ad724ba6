#include "probe/cpu/topology.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <sched.h>

#include "base/testing/manual_clock.h"
#include "process/affinity.h"

namespace remuda::probe::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;

TEST(ReadTopology, OfTwoNodesWithHyperthreads) {
  const auto topology = read_topology("numa:2 core:4 pu:2");
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->model, "CPU");
  ASSERT_THAT(topology->nodes, SizeIs(2));
  EXPECT_EQ(topology->nodes[0].numa_node, 0);
  EXPECT_EQ(topology->nodes[1].numa_node, 1);
  EXPECT_THAT(topology->nodes[1].cores,
              ElementsAre(ElementsAre(8, 9), ElementsAre(10, 11), ElementsAre(12, 13), ElementsAre(14, 15)));
}

TEST(ReadTopology, ReadsTheNodesMemory) {
  const auto topology = read_topology("numa:2(memory=4GiB) core:2 pu:1");
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->nodes[1].memory_bytes, int64_t{4} << 30);
}

TEST(ReadTopology, OfSocketsWithSeveralNodesEach) {
  const auto topology = read_topology("pack:2 numa:2 l3:1 core:3 pu:1");
  ASSERT_TRUE(topology);
  ASSERT_THAT(topology->nodes, SizeIs(4));
  for (const Node& node : topology->nodes) EXPECT_THAT(node.cores, SizeIs(3));
}

TEST(ReadTopology, CountsLogicalCpusWhereCoresAreUnknown) {
  const auto topology = read_topology("numa:1 pu:3");
  ASSERT_TRUE(topology);
  EXPECT_THAT(topology->nodes[0].cores, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(ReadTopology, CountsNoCoreTwiceWhereTwoMemoriesShareCores) {
  const auto topology = read_topology("pack:2 [numa] [numa] core:2 pu:1");
  ASSERT_TRUE(topology);
  ASSERT_THAT(topology->nodes, SizeIs(2));
  EXPECT_THAT(topology->nodes[0].cores, ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(topology->nodes[1].cores, ElementsAre(ElementsAre(2), ElementsAre(3)));
}

TEST(ReadTopology, FollowsTheNumberingOfThreads) {
  const auto topology = read_topology("core:2 pu:2(indexes=0,2,1,3)");
  ASSERT_TRUE(topology);
  EXPECT_THAT(topology->nodes[0].cores, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(ReadTopology, RefusesWhatHwlocCannotRead) {
  const auto topology = read_topology("nonsense:2");
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().kind, ErrorKind::failed);
}

std::vector<int> live_pus() {
  std::vector<int> pus;
  const auto topology = read_topology();
  if (!topology) return pus;
  for (const Node& node : topology->nodes)
    for (const Core& core : node.cores) pus.insert(pus.end(), core.begin(), core.end());
  std::ranges::sort(pus);
  return pus;
}

TEST(LiveTopology, IsWhatAffinityAllowsAndNoMore) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before)) allowed.push_back(cpu);
  EXPECT_EQ(live_pus(), allowed);

  CPU_ZERO(&one);
  CPU_SET(allowed.back(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_THAT(live_pus(), ElementsAre(allowed.back()));
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(KnownTopology, IsReadAnewWhenTheCpusChangeAndOnceAMinute) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  ManualClock clock;
  int reads = 0;
  KnownTopology known(
      [&reads] {
        ++reads;
        return read_topology();
      },
      clock);
  ASSERT_TRUE(known.get());
  clock.sleep_s(59);
  EXPECT_EQ(known.get().value().nodes.size(), read_topology()->nodes.size());
  EXPECT_EQ(reads, 1);
  clock.sleep_s(2);
  ASSERT_TRUE(known.get());
  EXPECT_EQ(reads, 2);

  CPU_ZERO(&one);
  const std::vector<int> allowed = process::allowed_cores();
  if (allowed.size() < 2) GTEST_SKIP() << "this needs two CPUs";
  CPU_SET(allowed.back(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const auto restricted = known.get();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  ASSERT_TRUE(restricted);
  EXPECT_THAT(restricted->nodes, ElementsAre(Field(&Node::cores, ElementsAre(ElementsAre(allowed.back())))));
}

TEST(KnownTopology, ThatCouldNotBeReadIsTriedAgain) {
  int reads = 0;
  KnownTopology known([&reads]() -> Result<CpuTopology> {
    if (++reads == 1) return failed("not now");
    return CpuTopology{"CPU", {}};
  });
  EXPECT_EQ(known.get().error().message, "not now");
  EXPECT_TRUE(known.get());
}

TEST(LiveTopology, KnowsModelAndMemory) {
  const auto topology = read_topology();
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_NE(topology->model, "");
  for (const Node& node : topology->nodes) EXPECT_GT(node.memory_bytes.value_or(0), 1 << 20);
}

}  // namespace
}  // namespace remuda::probe::cpu
