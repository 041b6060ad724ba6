#include "device/inventory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/packed.h"
#include "device/throttle.h"

namespace remuda {
namespace {

using testing::HasSubstr;

Device gpu(int index, const std::string& uuid, const std::string& pci) {
  Device device;
  device.id = uuid;
  device.kind = DeviceKind::gpu;
  device.index = index;
  device.uuid = uuid;
  device.pci = pci;
  return device;
}

/// Two GPUs and a CPU with a link, a network card and readings of every sort.
Inventory machine() {
  Inventory inventory;
  inventory.host = "host1";
  inventory.devices = {gpu(0, "GPU-1234abcd-0000", "0000:27:00.0"), gpu(1, "GPU-1234ffff-0000", "0000:38:00.0")};
  Device cpu;
  cpu.id = "cpu:0";
  cpu.cores = std::vector{0, 1, 2};
  inventory.devices.push_back(cpu);
  inventory.devices[0].memory_bytes = int64_t{48} << 30;
  inventory.devices[0].status.busy = Reading<double>(0.25, 1700000000.5);
  inventory.devices[0].status.processes = std::vector{Process{.pid = 7, .type = "compute", .user = "ada"}};
  inventory.devices[1].status.busy = Missing{MissingReason::lost, "it fell off the bus"};
  inventory.nics = {{.name = "mlx5_0", .numa_node = 1}};
  Link link{.a = "GPU-1234abcd-0000", .b = "GPU-1234ffff-0000"};
  link.path = Path::sys;
  link.fabric = Fabric::nvlink;
  link.fabric_links = 4;
  inventory.links = {link};
  return inventory;
}

TEST(Inventory, ReadsBackAsItWasWritten) {
  const Inventory written = machine();
  const auto read = parse_inventory(to_pretty(to_json(written)), "machine.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, written);
}

TEST(Inventory, IsUnpackedAsItWasPacked) {
  const Inventory written = machine();
  const auto read = unpack_inventory(pack(written), "the child");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, written);
  Inventory twice = machine();
  twice.devices[1].id = twice.devices[0].id;
  EXPECT_THAT(unpack_inventory(pack(twice), "the child").error().message, HasSubstr("two devices have the id"));
}

TEST(Inventory, AsJsonLeavesOutWhatIsNotThere) {
  Inventory inventory;
  inventory.host = "host1";
  Device cpu;
  cpu.id = "cpu:0";
  cpu.numa_node = Missing{MissingReason::unsupported, "no NUMA node"};
  inventory.devices = {cpu};
  EXPECT_EQ(to_line(to_json(inventory)),
            R"({"version":1,"host":"host1","devices":[{"id":"cpu:0","kind":"cpu","index":0,)"
            R"("numa_node":{"missing":"unsupported","detail":"no NUMA node"}}]})");
}

TEST(Inventory, AReadingWithATimeOfItsOwnTellsIt) {
  const Json json = to_json(machine());
  EXPECT_EQ(to_line(json["devices"][0]["status"]["busy"]), R"({"value":0.25,"time_s":1700000000.5})");
}

TEST(Inventory, IgnoresFieldsItDoesNotKnow) {
  const auto read = parse_inventory(
      R"({"version":1,"host":"h","new":{},"devices":[{"id":"cpu:0","kind":"cpu","index":0,"colour":"red"}]})",
      "m.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->devices.size(), 1u);
}

TEST(Inventory, ResolvesWhatPeopleType) {
  const Inventory inventory = machine();
  for (const char* name :
       {"GPU-1234abcd-0000", "gpu:0", "0", "0000:27:00.0", "27:00.0", "00000000:27:00.0", "GPU-1234a"}) {
    const auto device = inventory.resolve(name);
    ASSERT_TRUE(device) << name;
    EXPECT_EQ((*device)->index, 0) << name;
  }
  EXPECT_EQ((*inventory.resolve("cpu:0"))->kind, DeviceKind::cpu);
}

TEST(Inventory, SaysWhichDevicesThereAreWhenANameFitsNone) {
  const Inventory inventory = machine();
  EXPECT_EQ(inventory.resolve("gpu:7").error().message,
            "there is no device 'gpu:7' on host1; there are: gpu:0, gpu:1, cpu:0");
  EXPECT_THAT(inventory.resolve("GPU-1234").error().message, HasSubstr("begins the UUIDs of 2 devices"));
  EXPECT_FALSE(inventory.resolve("GPU-"));
  EXPECT_FALSE(inventory.resolve(""));
}

TEST(Inventory, FindsALinkFromEitherEnd) {
  const Inventory inventory = machine();
  ASSERT_NE(inventory.link("GPU-1234ffff-0000", "GPU-1234abcd-0000"), nullptr);
  EXPECT_EQ(inventory.link("GPU-1234abcd-0000", "cpu:0"), nullptr);
}

struct Wrong {
  const char* text;
  const char* sentence;
};

class WrongInventory : public testing::TestWithParam<Wrong> {};

TEST_P(WrongInventory, IsAUsageErrorOfOneSentence) {
  const auto read = parse_inventory(GetParam().text, "m.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::usage);
  EXPECT_THAT(read.error().message, HasSubstr("m.json"));
  EXPECT_THAT(read.error().message, HasSubstr(GetParam().sentence));
}

constexpr const char* kDevice = R"({"id":"a","kind":"gpu","index":0})";

INSTANTIATE_TEST_SUITE_P(
    Inventory, WrongInventory,
    testing::Values(
        Wrong{"", "is not JSON"}, Wrong{"[]", "this is no inventory"}, Wrong{"{}", "this is no inventory"},
        Wrong{R"({"devices":[]})", "lacks 'version'"},
        Wrong{R"({"version":2,"host":"h","devices":[]})", "version 2; this remuda reads version 1"},
        Wrong{R"({"version":1,"host":"h","devices":{}})", "m.json.devices must be a list, not object"},
        Wrong{R"({"version":1,"host":"h","devices":[1]})", "m.json.devices[0] must be an object, not number"},
        Wrong{R"({"version":1,"host":"h","devices":[{"id":"a","kind":"fpga","index":0}]})",
              "m.json.devices[0].kind must be one of cpu, gpu, partition"},
        Wrong{R"({"version":1,"host":"h","devices":[{"id":"a","kind":"gpu","index":9999999999}]})", "out of range"},
        Wrong{R"({"version":1,"host":"h","devices":[{"id":"a","kind":"gpu","index":0.5}]})", "a whole number"},
        Wrong{R"({"version":1,"host":"h","devices":[{"id":"a\u001b[2J","kind":"gpu","index":0}]})",
              "control characters"},
        Wrong{R"({"version":1,"host":"h","devices":[{"id":"a","kind":"gpu","index":0,"minor":{"missing":"asleep"}}]})",
              "m.json.devices[0].minor.missing must be one of unsupported, denied"},
        Wrong{
            R"({"version":1,"host":"h","devices":[{"id":"a","kind":"gpu","index":0},{"id":"a","kind":"gpu","index":1}]})",
            "two devices have the id 'a'"},
        Wrong{R"({"version":1,"host":"h","devices":[{"id":"a","kind":"partition","index":0,"parent":"b"}]})",
              "the parent of 'a' is 'b'"},
        Wrong{R"({"version":1,"host":"h","devices":[{"id":"a","kind":"gpu","index":0}],"links":[{"a":"a","b":"z"}]})",
              "leads to 'z', which is not there"},
        Wrong{R"({"version":1,"host":"h","devices":[{"id":"a","kind":"gpu","index":0}],"links":[{"a":"a","b":"a"}]})",
              "joins 'a' with itself"},
        Wrong{
            R"({"version":1,"host":"h","devices":[{"id":"a","kind":"gpu","index":0}],"samples":[{"time_s":1,"devices":[]}]})",
            "a sample of 0 devices"}));

TEST(Inventory, ALinkStandsOnce) {
  const auto read =
      parse_inventory(fmt::format(R"({{"version":1,"host":"h","devices":[{0},{{"id":"b","kind":"gpu","index":1}}],)"
                                  R"("links":[{{"a":"a","b":"b"}},{{"a":"b","b":"a"}}]}})",
                                  kDevice),
                      "m.json");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("stands twice"));
}

TEST(Inventory, ADeepNestIsRefused) {
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(parse_inventory(deep, "m.json"));
  const std::string closed =
      R"({"version":1,"host":"h","devices":[],"x":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_EQ(parse_inventory(closed, "m.json").error().message, "m.json is nested too deep");
}

TEST(Status, IsThrottledByHeatPowerAndHardware) {
  for (const char* why : {"thermal", "hardware_thermal", "power_cap", "hardware", "power_brake"}) {
    Status status;
    status.throttle = std::vector<std::string>{"idle", why};
    EXPECT_TRUE(is_throttled(status).value()) << why;
  }
  Status status;
  EXPECT_FALSE(is_throttled(status).has_value());
  status.throttle = std::vector<std::string>{"idle", "application_clocks", "display", "sync_boost"};
  EXPECT_FALSE(is_throttled(status).value()) << "nothing is lost by these";
}

}  // namespace
}  // namespace remuda
