#include "route/network.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "route/testing/networks.h"
#include "topology/bandwidth_table.h"
#include "topology/matrix.h"

namespace remuda::route {
namespace {

using testing::ElementsAre;

/// The names of the channels that a route passes.
std::vector<std::string> way(const Network& network, size_t from, size_t to) {
  std::vector<std::string> names;
  for (const size_t channel : network.routes[from][to].channels) names.push_back(network.channels[channel].name);
  return names;
}

Inventory gpus(size_t count) {
  Inventory inventory{.host = "host1"};
  for (size_t i = 0; i < count; ++i)
    inventory.devices.push_back(
        {.id = "GPU-" + std::to_string(i), .kind = DeviceKind::gpu, .index = static_cast<int>(i)});
  return inventory;
}

void join(Inventory& inventory, int a, int b, Path path) {
  inventory.links.push_back({.a = "GPU-" + std::to_string(a), .b = "GPU-" + std::to_string(b), .path = path});
}

Network of_all(const Inventory& inventory) { return network_of(inventory, topology::linked_devices(inventory)); }

/// Two GPUs on a switch, two on host bridges of the other socket.
Inventory two_sockets() {
  Inventory inventory = gpus(4);
  for (int i = 0; i < 4; ++i) inventory.devices[static_cast<size_t>(i)].numa_node = i / 2;
  join(inventory, 0, 1, Path::pix);
  join(inventory, 2, 3, Path::node);
  for (const int a : {0, 1})
    for (const int b : {2, 3}) join(inventory, a, b, Path::sys);
  return inventory;
}

TEST(Network, PcieGoesUpTheTreeAndDown) {
  const Network network = of_all(two_sockets());
  EXPECT_THAT(way(network, 0, 1), ElementsAre("uplink of gpu:0", "uplink of gpu:1"));
  EXPECT_THAT(way(network, 0, 3), ElementsAre("uplink of gpu:0", "uplink of the PCIe switch of gpu:0-1",
                                              "uplink of NUMA node 0", "uplink of NUMA node 1", "uplink of gpu:3"));
  EXPECT_EQ(network.routes[0][3].label, "SYS");
  EXPECT_EQ(network.routes[0][3].gbps, 10);
  EXPECT_FALSE(network.routes[0][3].measured);
  EXPECT_EQ(network.routes[0][3].latency_us, topology::link_speeds().latency_us("pcie"));
}

TEST(Network, ALinkCarriesTheFastestOfItsPairsInEachDirection) {
  const Network network = of_all(two_sockets());
  const auto& there = network.routes[0][3].channels;
  const auto& back = network.routes[3][0].channels;
  EXPECT_EQ(network.channels[there[0]].gbps, 24);  // as gpu:0 to gpu:1
  EXPECT_EQ(network.channels[there[1]].gbps, 10);
  EXPECT_EQ(network.channels[there[4]].gbps, 16);  // as gpu:2 to gpu:3
  EXPECT_EQ(network.channels[back[4]].name, network.channels[there[0]].name);
  EXPECT_NE(back[4], there[0]);
  EXPECT_EQ(network.routes[1][2].channels[1], there[1]) << "both GPUs share the way out of their switch";
}

TEST(Network, DirectLinksAreNotShared) {
  const Network network = machine("nv-dgx1-v100-8gpu-4nic");
  EXPECT_THAT(way(network, 0, 3), ElementsAre("gpu:0 - gpu:3"));
  EXPECT_EQ(network.routes[0][3].gbps, 50);
  EXPECT_NE(network.routes[0][3].channels, network.routes[3][0].channels);
  EXPECT_EQ(network.routes[0][3].latency_us, topology::link_speeds().latency_us("nvlink"));
  EXPECT_THAT(way(network, 0, 5), ElementsAre("uplink of gpu:0", "uplink of the PCIe switch of gpu:0-1",
                                              "uplink of the PCIe host bridge of gpu:0-3", "uplink of CPUs 0-19,40-59",
                                              "uplink of CPUs 20-39,60-79", "uplink of the PCIe host bridge of gpu:4-7",
                                              "uplink of the PCIe switch of gpu:4-5", "uplink of gpu:5"));
}

TEST(Network, NodesWithoutANumberAreToldApart) {
  const Network network = machine("nv-8gpu-pix-phb-sys");
  EXPECT_THAT(way(network, 0, 5), testing::Contains("uplink of the NUMA node of gpu:0-3"));
  EXPECT_THAT(way(network, 0, 5), testing::Contains("uplink of the NUMA node of gpu:4-7"));
}

TEST(Network, ASwitchJoinsAll) {
  const Network network = machine("nv-hgxh100-8gpu-8nic");
  EXPECT_THAT(way(network, 2, 7), ElementsAre("gpu:2 - NVLink switch", "gpu:7 - NVLink switch"));
  EXPECT_EQ(network.routes[2][7].channels[0], network.routes[2][3].channels[0]);
  EXPECT_NE(network.routes[2][7].channels[0], network.routes[7][2].channels[1]);
}

TEST(Network, WithoutPeerAccessAllPassesTheHostsMemory) {
  Inventory inventory = two_sockets();
  for (Link& link : inventory.links) link.peer_access = PeerAccess::chipset;
  const Network network = of_all(inventory);
  EXPECT_THAT(way(network, 0, 1),
              ElementsAre("uplink of gpu:0", "uplink of the PCIe switch of gpu:0-1", "memory of NUMA node 0",
                          "uplink of the PCIe switch of gpu:0-1", "uplink of gpu:1"));
  EXPECT_THAT(way(network, 0, 3),
              ElementsAre("uplink of gpu:0", "uplink of the PCIe switch of gpu:0-1", "memory of NUMA node 0",
                          "uplink of NUMA node 0", "uplink of NUMA node 1", "uplink of gpu:3"));
  const auto memory = [&](size_t a, size_t b) { return network.routes[a][b].channels[2]; };
  EXPECT_EQ(memory(0, 1), memory(1, 0)) << "readers and writers share it";
  EXPECT_EQ(network.channels[memory(0, 1)].gbps, topology::link_speeds().gbps({.of = "host_memory"}));
  EXPECT_EQ(network.routes[0][1].latency_us, topology::link_speeds().latency_us("staged"));
  EXPECT_EQ(network.routes[0][1].gbps, 9);
  EXPECT_EQ(network.channels[network.routes[0][1].channels[0]].gbps, 18) << "in and out at once";
}

TEST(Network, AStagedSpeedThatWasMeasuredIsNotDoubled) {
  Inventory inventory = two_sockets();
  for (Link& link : inventory.links) link.peer_access = PeerAccess::chipset;
  inventory.measured_links = {{.a = "GPU-0", .b = "GPU-1", .gbps = 12}};
  const Network network = of_all(inventory);
  EXPECT_EQ(network.channels[network.routes[0][1].channels[0]].gbps, 12);
}

TEST(Network, CpuDevicesShareTheirNodesMemory) {
  Inventory inventory{.host = "host1"};
  for (int i = 0; i < 4; ++i) {
    Device cpu{.id = "cpu:" + std::to_string(i), .kind = DeviceKind::cpu, .index = i};
    cpu.numa_node = i / 2;
    inventory.devices.push_back(cpu);
  }
  const Network network = of_all(inventory);
  EXPECT_THAT(way(network, 0, 1), ElementsAre("uplink of cpu:0", "memory of NUMA node 0", "uplink of cpu:1"));
  EXPECT_THAT(way(network, 0, 2), ElementsAre("uplink of cpu:0", "memory of NUMA node 0", "uplink of NUMA node 0",
                                              "uplink of NUMA node 1", "uplink of cpu:2"));
  EXPECT_EQ(network.routes[0][1].latency_us, topology::link_speeds().latency_us("shared_memory"));
}

TEST(Network, WhatWasMeasuredWins) {
  Inventory inventory = two_sockets();
  inventory.measured_links = {{.a = "GPU-3", .b = "GPU-0", .gbps = 12.5, .latency_us = 8.0}};
  const Network network = of_all(inventory);
  for (const auto& [from, to] : std::vector<std::pair<size_t, size_t>>{{0, 3}, {3, 0}}) {
    EXPECT_EQ(network.routes[from][to].gbps, 12.5);
    EXPECT_TRUE(network.routes[from][to].measured);
    EXPECT_EQ(network.routes[from][to].latency_us, 8);
  }
  const Channel& socket = network.channels[network.routes[1][2].channels[2]];
  EXPECT_EQ(socket.gbps, 12.5);
  EXPECT_TRUE(socket.measured);
  EXPECT_EQ(network.routes[1][2].gbps, 10);
}

TEST(Network, NothingGoesWhereNothingIsKnown) {
  const Network network = of_all(gpus(2));
  EXPECT_EQ(network.routes[0][1].gbps, 0);
  EXPECT_TRUE(network.channels.empty());
}

TEST(Network, PartsOfOneGpuHaveALinkOfTheirOwnWhereItWasMeasured) {
  Inventory inventory = gpus(1);
  for (int i = 0; i < 2; ++i)
    inventory.devices.push_back(
        {.id = "MIG-" + std::to_string(i), .kind = DeviceKind::partition, .index = i, .parent = "GPU-0"});
  inventory.measured_links = {{.a = "MIG-0", .b = "MIG-1", .gbps = 3}};
  const Network network = network_of(inventory, {&inventory.devices[1], &inventory.devices[2]});
  ASSERT_EQ(network.routes[0][1].channels.size(), 1U);
  EXPECT_NE(network.routes[0][1].channels, network.routes[1][0].channels);
}

/// What Rounds takes for granted.
TEST(Network, EveryChannelHasRoomForEachOfItsRoutes) {
  for (const char* name :
       {"nv-dgx1-v100-8gpu-4nic", "amd-rccl-16p1h", "nv-2x5090-phb-p2p-gns", "nv-8gpu-pix-phb-sys",
        "amd-rccl-8xmi100-two-hives-rome", "nv-mixed-2x5090-3x4090", "nv-2x3090-dualsocket-numa-na"}) {
    const Network network = machine(name);
    for (size_t from = 0; from < network.size(); ++from)
      for (size_t to = 0; to < network.size(); ++to) {
        if (from == to) continue;
        const Route& route = network.routes[from][to];
        EXPECT_GT(route.gbps, 0) << name;
        EXPECT_FALSE(route.channels.empty()) << name;
        for (const size_t channel : route.channels) EXPECT_GE(network.channels[channel].gbps, route.gbps) << name;
      }
  }
}

TEST(LabelRanges, JoinWhatFollowsEachOther) {
  EXPECT_EQ(label_ranges({"gpu:0", "gpu:1", "gpu:2", "cpu:1", "cpu:3", "cpu:4"}), "gpu:0-2 cpu:1 cpu:3-4");
  EXPECT_EQ(label_ranges({"gpu:2", "gpu:1", "odd", "gpu:0/1", "gpu:"}), "gpu:2 gpu:1 odd gpu:0/1 gpu:");
  EXPECT_EQ(label_ranges({}), "");
}

}  // namespace
}  // namespace remuda::route
