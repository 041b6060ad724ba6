#include "cli/list.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

TEST(InventoryTable, ShowsALinePerDevice) {
  const Inventory inventory{"host1",
                            {{"cpu:0", DeviceKind::cpu, "A CPU", {0, 1, 2, 3}, 0, int64_t{3} << 30},
                             {"cpu:1", DeviceKind::cpu, "A CPU", {4, 5, 8}, 1, int64_t{512} << 20}}};
  EXPECT_EQ(inventory_table(inventory),
            "ID     MODEL  CORES  NUMA  MEMORY\n"
            "cpu:0  A CPU    0-3     0  3.0 GiB\n"
            "cpu:1  A CPU  4-5,8     1  512.0 MiB\n");
}

TEST(InventoryTable, SaysWhyAReadingIsMissing) {
  const Inventory inventory{"host1",
                            {{"cpu:0",
                              DeviceKind::cpu,
                              "CPU",
                              {0, 1},
                              Missing{MissingReason::unsupported, "spans 0-1"},
                              Missing{MissingReason::unsupported, "not known"}}}};
  EXPECT_EQ(inventory_table(inventory),
            "ID     MODEL  CORES  NUMA       MEMORY\n"
            "cpu:0  CPU      0-1  spans 0-1  not known\n");
}

TEST(InventoryTable, WithoutDevicesIsItsHeader) {
  EXPECT_EQ(inventory_table({"host1", {}}), "ID  MODEL  CORES  NUMA  MEMORY\n");
}

}  // namespace
}  // namespace remuda
