#include "place/held.h"

#include <gmock/gmock.h>

#include "place/testing/machine.h"

namespace remuda::place {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(HeldByProcesses, NamesTheUserAndTheFirstProcess) {
  Inventory inventory = make_gpus(2);
  Process first{.pid = 7, .type = "compute", .user = "alice", .command = "python train.py", .start_time_s = 50.0};
  Process second{.pid = 9, .type = "shared", .start_time_s = 40.0};
  inventory.devices[1].status.processes = std::vector{first, second};
  const auto held = held_by_processes(inventory);
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_EQ(held[0].device, "gpu:1");
  EXPECT_EQ(held[0].share, 1);
  EXPECT_EQ(held[0].holder, "alice (process 7: python train.py, and 1 more)");
  EXPECT_EQ(held[0].since_s, 40);
  EXPECT_EQ(held[0].until_s, std::nullopt);
}

TEST(HeldByProcesses, AScreenHoldsNothing) {
  Inventory inventory = make_gpus(1);
  inventory.devices[0].status.processes = std::vector{Process{.pid = 7, .type = "graphics"}};
  EXPECT_THAT(held_by_processes(inventory), IsEmpty());
}

TEST(HeldByProcesses, OfACutGpuThePartitionsAreHeld) {
  Inventory inventory = make_gpus(1);
  const std::vector processes{Process{.pid = 7, .type = "compute"}};
  inventory.devices[0].status.processes = processes;
  inventory.devices.push_back({.id = "a", .kind = DeviceKind::partition, .parent = "gpu:0"});
  inventory.devices.push_back({.id = "b", .kind = DeviceKind::partition, .parent = "gpu:0"});
  ASSERT_THAT(held_by_processes(inventory), SizeIs(1)) << "the partitions have no readings";
  EXPECT_EQ(held_by_processes(inventory)[0].device, "gpu:0");
  inventory.devices[1].status.processes = processes;
  inventory.devices[2].status.processes = std::vector<Process>{};
  ASSERT_THAT(held_by_processes(inventory), SizeIs(1));
  EXPECT_EQ(held_by_processes(inventory)[0].device, "a");
}

}  // namespace
}  // namespace remuda::place
