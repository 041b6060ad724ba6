#include "device/inventory.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

Inventory two_devices() {
  return {"host1",
          {{"cpu:0", DeviceKind::cpu, "A CPU", {0, 1, 2}, 0, int64_t{8} << 30},
           {"cpu:1", DeviceKind::cpu, "A CPU", {3}, 1, Missing{MissingReason::unsupported, "no NUMA node"}}}};
}

TEST(Inventory, AsJsonHoldsEveryDeviceInOrder) {
  EXPECT_EQ(to_line(to_json(two_devices())),
            R"({"version":1,"host":"host1","devices":[)"
            R"({"id":"cpu:0","kind":"cpu","model":"A CPU","cores":[0,1,2],"numa_node":0,"memory_bytes":8589934592},)"
            R"({"id":"cpu:1","kind":"cpu","model":"A CPU","cores":[3],"numa_node":1,)"
            R"("memory_bytes":{"missing":"unsupported","detail":"no NUMA node"}}]})");
}

TEST(Inventory, WithoutDevicesIsAnEmptyList) {
  EXPECT_EQ(to_line(to_json(Inventory{"host1", {}})), R"({"version":1,"host":"host1","devices":[]})");
}

TEST(Inventory, FindsADeviceByItsWholeId) {
  const Inventory inventory = two_devices();
  ASSERT_NE(inventory.find("cpu:1"), nullptr);
  EXPECT_EQ(inventory.find("cpu:1")->cores, std::vector<int>{3});
  EXPECT_EQ(inventory.find("cpu"), nullptr);
  EXPECT_EQ(inventory.find("CPU:1"), nullptr);
}

}  // namespace
}  // namespace remuda
