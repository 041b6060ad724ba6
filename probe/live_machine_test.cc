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

/// One that finds what it is made with, or, with a reason in `why`, cannot look.
class Played final : public Probe {
 public:
  Played(const char* name, std::string_view vendor, Finding finding, std::string why = "", bool blind = false)
      : name_(name), vendor_(vendor), finding_(std::move(finding)), why_(std::move(why)), blind_(blind) {}
  const char* name() const override { return name_; }
  std::string_view vendor() const override { return vendor_; }
  std::optional<std::string> unviable() override { return why_.empty() ? std::nullopt : std::optional(why_); }
  bool is_blind() const override { return blind_; }
  Result<Finding> find() override { return finding_; }

 private:
  const char* name_;
  std::string_view vendor_;
  Finding finding_;
  std::string why_;
  bool blind_;
};

Device gpu_at(const std::string& address, const std::string& vendor) {
  return {.id = address, .kind = DeviceKind::gpu, .vendor = vendor, .model = vendor + " card", .pci = address};
}

Inventory machine_of(std::unique_ptr<Probe> driver, std::vector<Device> on_the_bus) {
  std::vector<std::unique_ptr<Probe>> probes;
  probes.push_back(std::move(driver));
  probes.push_back(std::make_unique<Played>("pci", "", Finding{.devices = std::move(on_the_bus)}));
  return LiveMachine::seen_by(std::move(probes)).read().value();
}

constexpr const char* kMismatch = "library and kernel module are of different versions";

/// testdata/cases/live-power-nonsense, and one sensor that does not answer.
TEST(LiveMachine, ReadingsThatCannotBeAreMissing) {
  Device read = gpu_at("0000:17:00.0", "Acme"), slot = read;
  read.memory_bytes = int64_t{1} << 30, read.pcie_width_max = 255;
  read.status.power_watts = 3'700'000.0, read.status.busy = 0.5;
  read.status.temperature_c = Missing{MissingReason::lost, "temperature: the driver gave up waiting for the device"};
  slot.pcie_width_max = 16;
  const Device gpu =
      machine_of(std::make_unique<Played>("acme", "Acme", Finding{.devices = {read}}), {slot}).devices.at(0);
  EXPECT_EQ(gpu.status.power_watts.missing().detail, "power_watts: 3700000 W makes no sense");
  EXPECT_EQ(gpu.status.temperature_c.missing().reason, MissingReason::unsupported);
  EXPECT_EQ(gpu.pcie_width_max, 16) << "the bus knows better";
}

TEST(LiveMachine, AGpuWhoseDriverDoesNotAnswerHasNone) {
  const Inventory machine = machine_of(std::make_unique<Played>("acme", "Acme", Finding{}, kMismatch, true),
                                       {gpu_at("0000:17:00.0", "Acme"), gpu_at("0000:18:00.0", "Other")});
  const Missing expected{MissingReason::no_driver, kMismatch};
  EXPECT_EQ(machine.devices[0].memory_bytes.missing(), expected);
  EXPECT_EQ(machine.devices[0].status.busy.missing(), expected);
  EXPECT_FALSE(machine.devices[1].status.busy.was_read()) << "of its maker there is no probe";
  EXPECT_EQ(machine.unseen(), std::string("acme: ") + kMismatch);
}

TEST(LiveMachine, AGpuThatItsDriverDoesNotListHasNone) {
  Device read = gpu_at("0000:17:00.0", "Acme");
  read.memory_bytes = int64_t{1} << 30;
  const Inventory machine = machine_of(std::make_unique<Played>("acme", "Acme", Finding{.devices = {read}}),
                                       {gpu_at("0000:17:00.0", "Acme"), gpu_at("0000:18:00.0", "Acme")});
  EXPECT_FALSE(machine.devices[0].status.busy.was_read());
  EXPECT_EQ(machine.devices[1].status.busy.missing(),
            (Missing{MissingReason::no_driver, "its driver does not list it"}));
  EXPECT_EQ(machine.unseen(), "");
}

}  // namespace
}  // namespace remuda::probe
