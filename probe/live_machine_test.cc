#include "probe/live_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace remuda::probe {
namespace {

TEST(LiveMachine, NamesTheHostItsDevicesAndItsProbes) {
  const auto inventory = LiveMachine({}).read();
  ASSERT_TRUE(inventory) << inventory.error().message;
  EXPECT_NE(inventory->host, "");
  EXPECT_GT(inventory->time_s, 0);
  EXPECT_NE(inventory->find("cpu:0"), nullptr);
  std::set<std::string> ids, probes;
  for (const Device& device : inventory->devices) EXPECT_TRUE(ids.insert(device.id).second) << device.id;
  for (const ProbeReport& probe : inventory->probes) {
    probes.insert(probe.name);
    EXPECT_THAT(probe.reason, testing::Not(testing::EndsWith("."))) << probe.name;
  }
  EXPECT_EQ(probes, (std::set<std::string>{"nvml", "amd", "pci", "cpu"}));
}

TEST(LiveMachine, ReadsAgain) {
  LiveMachine machine({});
  const auto first = machine.read(), second = machine.read();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->devices.size(), second->devices.size());
}

TEST(LiveMachine, IsAnInventoryThatReadsBack) {
  const auto inventory = LiveMachine({}).read();
  ASSERT_TRUE(inventory);
  const auto read = parse_inventory(to_pretty(to_json(*inventory)), "live");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, *inventory);
}

TEST(LiveMachine, HandsOnWhatAProbeRefuses) {
  const auto inventory = LiveMachine({.cpu_devices = 100'000}).read();
  ASSERT_FALSE(inventory);
  EXPECT_EQ(inventory.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace remuda::probe
