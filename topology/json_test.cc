#include "topology/json.h"

#include <gtest/gtest.h>

#include "topology/testing/machines.h"

namespace remuda::topology {
namespace {

TEST(TopologyJson, HasExactlyTheseKeysAndValues) {
  Inventory inventory = test_machine("X NV4 ?\nNV4 X SYS\n? SYS X");
  measure(inventory, "GPU-0", "GPU-1", 101.5);
  EXPECT_EQ(to_line(to_json(make_matrix(inventory))),
            R"({"devices":["GPU-0","GPU-1","GPU-2"],)"
            R"("matrix":[["X","NV4","?"],["NV4","X","SYS"],["?","SYS","X"]],)"
            R"("gbps":[[null,101.5,null],[101.5,null,10.0],[null,10.0,null]],)"
            R"("measured":[[false,true,false],[true,false,false],[false,false,false]]})");
}

TEST(TopologyJson, OfAMachineWithoutDevicesHoldsEmptyLists) {
  const Inventory inventory{.host = "host1"};
  EXPECT_EQ(to_line(to_json(make_matrix(inventory))), R"({"devices":[],"matrix":[],"gbps":[],"measured":[]})");
}

}  // namespace
}  // namespace remuda::topology
