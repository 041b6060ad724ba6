#include "probe/probe.h"

#include <gtest/gtest.h>
#include <set>

namespace remuda {
namespace {

TEST(ProbeMachine, NamesTheHostAndItsDevices) {
  const auto inventory = probe_machine({});
  ASSERT_TRUE(inventory) << inventory.error().message;
  EXPECT_NE(inventory->host, "");
  EXPECT_NE(inventory->find("cpu:0"), nullptr);
  std::set<std::string> ids;
  for (const Device& device : inventory->devices) EXPECT_TRUE(ids.insert(device.id).second) << device.id;
}

TEST(ProbeMachine, HandsOnWhatAProbeRefuses) {
  const auto inventory = probe_machine({.cpu_devices = 100'000});
  ASSERT_FALSE(inventory);
  EXPECT_EQ(inventory.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace remuda
