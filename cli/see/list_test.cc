#include "cli/see/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

Device cpu(int index, std::vector<int> cores, Reading<int> numa_node, Reading<int64_t> memory) {
  Device device;
  device.index = index;
  device.id = device.label();
  device.model = "A CPU";
  device.cores = std::move(cores);
  device.numa_node = std::move(numa_node);
  device.memory_bytes = std::move(memory);
  return device;
}

Device gpu(int index) {
  Device device{.id = "GPU-" + std::to_string(index), .kind = DeviceKind::gpu, .index = index, .model = "A GPU"};
  device.memory_bytes = int64_t{48} << 30;
  device.status.memory_used_bytes = int64_t{12} << 30;
  device.status.busy = 0.37;
  device.status.power_watts = 210.4;
  device.status.temperature_c = 54;
  device.pci = "0000:27:00.0";
  device.status.processes = std::vector<Process>{};
  return device;
}

TEST(InventoryText, ShowsALinePerDevice) {
  const Inventory inventory{
      .host = "host1",
      .devices = {cpu(0, {0, 1, 2, 3}, 0, int64_t{3} << 30), cpu(1, {4, 5, 8}, 1, int64_t{512} << 20)}};
  EXPECT_EQ(inventory_text(inventory),
            "DEVICE  MODEL  MEMORY     NUMA  CORES\n"
            "cpu:0   A CPU  3.0 GiB       0    0-3\n"
            "cpu:1   A CPU  512.0 MiB     1  4-5,8\n");
}

TEST(InventoryText, ShowsWhatAGpuDoesAndForWhom) {
  Device used = gpu(1);
  used.status.processes = std::vector<Process>{{.pid = 1, .user = "ada"}, {.pid = 2, .user = "ada"}, {.pid = 3}};
  const Inventory inventory{.host = "host1", .devices = {gpu(0), used}};
  EXPECT_EQ(inventory_text(inventory),
            "DEVICE  MODEL  MEMORY                BUSY  POWER  TEMP           PCI  USED BY\n"
            "gpu:0   A GPU  12.0 GiB of 48.0 GiB  37 %  210 W  54 C  0000:27:00.0  nobody\n"
            "gpu:1   A GPU  12.0 GiB of 48.0 GiB  37 %  210 W  54 C  0000:27:00.0  ada (2), pid 3\n");
}

TEST(InventoryText, NamesWhoHasLeasedADeviceOnWhichNobodyComputes) {
  Inventory inventory;
  inventory.devices = {gpu(0), gpu(1)};
  const Leases leases{.is_known = true, .holders = {{"GPU-1", "alice (job 12)"}}};
  const std::string text = inventory_text(inventory, Table::kAnyWidth, leases);
  EXPECT_THAT(text, HasSubstr("nobody\n"));
  EXPECT_THAT(text, HasSubstr("alice (job 12)\n"));
  EXPECT_THAT(inventory_text(inventory, Table::kAnyWidth, {.is_known = false, .holders = {}}),
              Not(HasSubstr("nobody")));
  inventory.devices[1].status.processes = std::vector<Process>{{.pid = 1, .user = "nobody"}};
  EXPECT_THAT(inventory_text(inventory, Table::kAnyWidth, leases), Not(HasSubstr("alice")))
      << "a user of that name computes there";
}

TEST(InventoryText, LeavesColumnsOutBeforeItCutsModels) {
  Device used = gpu(0);
  used.status.processes = std::vector<Process>{{.pid = 1, .user = "ada"}};
  const Inventory inventory{.host = "host1", .devices = {used}};
  EXPECT_EQ(inventory_text(inventory, 63),
            "DEVICE  MODEL  MEMORY                BUSY  POWER  TEMP  USED BY\n"
            "gpu:0   A GPU  12.0 GiB of 48.0 GiB  37 %  210 W  54 C  ada\n"
            "No room for PCI: remuda list DEVICE shows all\n");
  EXPECT_EQ(inventory_text(inventory, 50),
            "DEVICE  MODEL  MEMORY                BUSY  USED BY\n"
            "gpu:0   A GPU  12.0 GiB of 48.0 GiB  37 %  ada\n"
            "No room for PCI, TEMP, POWER: remuda list DEVICE shows all\n");
}

TEST(InventoryText, ModelsThatDifferLookUnlikeWhereThereIsLittleRoom) {
  Inventory inventory{.host = "host1", .devices = {gpu(0), gpu(1)}};
  for (Device& device : inventory.devices) device.vendor = "NVIDIA";
  inventory.devices[0].model = "NVIDIA GeForce RTX 4090";
  inventory.devices[1].model = "NVIDIA GeForce RTX 5090";
  const std::string narrow = inventory_text(inventory, 60);
  EXPECT_THAT(narrow, HasSubstr(" RTX 4090 "));
  EXPECT_THAT(narrow, HasSubstr(" RTX 5090 "));
  EXPECT_THAT(inventory_text(inventory, Table::kAnyWidth), HasSubstr("NVIDIA GeForce RTX 4090"));
  inventory.devices[0].model = "NVIDIA A100-SXM4-40GB";
  inventory.devices[1].model = "NVIDIA A100-SXM4-80GB";
  EXPECT_THAT(inventory_text(inventory, 60), testing::Not(HasSubstr(" A100 ")));
}

TEST(InventoryText, SaysOnceWhyReadingsAreMissing) {
  Inventory inventory{.host = "host1", .devices = {gpu(0), gpu(1), gpu(2)}};
  for (const int lost : {1, 2}) {
    Device& device = inventory.devices[lost];
    device.status = {};
    device.status.busy = device.status.power_watts = Missing{MissingReason::lost, "it fell off the bus"};
  }
  inventory.devices[2].numa_node = Missing{MissingReason::unsupported, "one node only"};
  const std::string text = inventory_text(inventory);
  EXPECT_THAT(text, HasSubstr("gpu:1, gpu:2: it fell off the bus\n"));
  EXPECT_THAT(text, HasSubstr("lost"));
  EXPECT_THAT(text, Not(HasSubstr("one node only"))) << "what a device does not have needs no sentence";
}

/// testdata/cases/list-unnamed-reason: what the table does not show needs no sentence.
TEST(InventoryText, SaysOfWhichReadingAReasonIs) {
  Inventory inventory{.host = "host1", .devices = {gpu(0), gpu(1)}};
  inventory.devices[0].serial = inventory.devices[0].uuid = Missing{MissingReason::denied, "left out"};
  EXPECT_THAT(inventory_text(inventory), Not(HasSubstr("left out")));
  inventory.devices[1].status.power_watts = Missing{MissingReason::denied, "left out"};
  EXPECT_THAT(inventory_text(inventory), HasSubstr("gpu:1: power_watts: left out\n"));
  inventory.devices[1].status.power_watts = Missing{MissingReason::denied, "power: this user may not read it"};
  EXPECT_THAT(inventory_text(inventory), HasSubstr("gpu:1: power: this user may not read it\n"));
}

/// testdata/cases/list-many-processes.
TEST(InventoryText, CountsProcessesWhereTheyAreMany) {
  Device used = gpu(0), shared = gpu(1), few = gpu(2);
  std::vector<Process> unnamed, named;
  for (int pid = 1; pid <= 2500; ++pid) {
    unnamed.push_back({.pid = pid});
    named.push_back({.pid = pid, .user = "user" + std::to_string(pid % 7)});
  }
  used.status.processes = unnamed, shared.status.processes = named;
  few.status.processes = std::vector<Process>{{.pid = 7}, {.pid = 8}, {.pid = 8}};
  const std::string text = inventory_text({.host = "host1", .devices = {used, shared, few}}, Table::kAnyWidth);
  EXPECT_THAT(text, HasSubstr(" 2500 processes\n"));
  EXPECT_THAT(text, HasSubstr(" 2500 processes of 7 users\n"));
  EXPECT_THAT(text, HasSubstr(" pid 7, pid 8 (2)\n"));
  const std::string all = device_text(used);
  EXPECT_THAT(all, HasSubstr("and 2480 more; --json has all\n"));
  EXPECT_LT(all.size(), 4000);
}

TEST(InventoryText, SaysWhyAModelIsBlank) {
  Inventory inventory{.host = "host1", .source = "a matrix", .devices = {gpu(0), gpu(1), gpu(2)}};
  inventory.devices[0].model = inventory.devices[2].model = "";
  inventory.devices[2].vendor = "ACME";
  const std::string text = inventory_text(inventory);
  EXPECT_THAT(text, testing::ContainsRegex("gpu:0 +model unknown "));
  EXPECT_THAT(text, testing::ContainsRegex("gpu:2 +ACME, model unknown "));
  EXPECT_THAT(text, HasSubstr("gpu:0, gpu:2: the recording does not name the model (a matrix)\n"));
  inventory.source.clear();
  EXPECT_THAT(inventory_text(inventory), HasSubstr("gpu:0, gpu:2: nothing on this machine names the model\n"));
  inventory.devices = {gpu(0)};
  EXPECT_THAT(inventory_text(inventory), Not(HasSubstr("names the model")));
}

TEST(InventoryText, SaysWhyThereIsNoGpu) {
  Inventory inventory{.host = "host1", .devices = {cpu(0, {0}, 0, int64_t{1} << 30)}};
  inventory.probes = {
      {.name = "vendor", .reason = "its library is not installed"}, {.name = "bus"}, {.name = "cpu", .devices = 1}};
  EXPECT_THAT(inventory_text(inventory), HasSubstr("No GPU (vendor: its library is not installed; bus: found none)\n"));
  inventory.probes[0].blind = true;
  EXPECT_THAT(inventory_text(inventory), HasSubstr("No GPU can be seen (vendor: its library"));
  inventory.devices.push_back(gpu(0));
  EXPECT_THAT(inventory_text(inventory), Not(HasSubstr("No GPU")));
}

TEST(InventoryText, EndsWithTheNotes) {
  Inventory inventory{.host = "host1", .devices = {gpu(0)}};
  inventory.notes = {"two rows are missing"};
  inventory.probes = {{"vendor", 1, "one GPU did not answer"}};
  EXPECT_THAT(inventory_text(inventory),
              testing::EndsWith("vendor: one GPU did not answer\nnote: two rows are missing\n"));
}

TEST(DeviceText, HoldsEveryReadingThatWasTaken) {
  Device device = gpu(0);
  device.serial = Missing{MissingReason::denied, "only root may read it"};
  const std::string text = device_text(device);
  EXPECT_THAT(text, testing::ContainsRegex("temperature_c +54"));
  EXPECT_THAT(text, testing::ContainsRegex("serial +denied: only root may read it"));
  EXPECT_THAT(text, Not(HasSubstr("ecc")));
}

}  // namespace
}  // namespace remuda::cli
