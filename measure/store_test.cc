#include "measure/store.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/env.h"
#include "base/file.h"
#include "base/testing/scratch_folder.h"

namespace remuda::measure {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Device one_cpu(int index, std::vector<int> cores) {
  Device device{.id = "cpu:" + std::to_string(index), .index = index};
  device.cores = Reading(std::move(cores));
  return device;
}

/// A machine of two CPU devices with a core each, and a GPU.
Inventory machine() {
  return {.host = "here",
          .devices = {one_cpu(0, {0}), one_cpu(1, {1}), Device{.id = "GPU-1", .kind = DeviceKind::gpu}}};
}

MeasuredDevice figures(const std::string& id, double gbps) {
  return {.id = id, .time_s = 5, .host_to_device_gbps = gbps, .gemm = {{"float32", 1.5}}};
}

Inventory measured_machine() {
  Inventory inventory = machine();
  inventory.measured_devices = {figures("cpu:0", 10), figures("GPU-1", 20)};
  inventory.measured_links = {{.a = "cpu:0", .b = "cpu:1", .time_s = 5, .gbps = 7, .latency_us = Reading(0.1)}};
  return inventory;
}

class Store : public ::testing::Test {
 protected:
  Store() { ::setenv("XDG_STATE_HOME", folder_.path("state").c_str(), 1); }
  ~Store() override { ::unsetenv("XDG_STATE_HOME"); }

  std::string file() const { return folder_.path("state/remuda/measured.json"); }
  void write(const std::string& text) const { folder_.write("state/remuda/measured.json", text); }
  static Inventory loaded(Inventory inventory) {
    const auto outcome = load_measured(inventory);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return inventory;
  }

  ScratchFolder folder_;
};

TEST_F(Store, GivesBackWhatItWasGiven) {
  const auto path = store_measured(measured_machine());
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, file());
  EXPECT_EQ(loaded(machine()), measured_machine());
}

TEST_F(Store, IsForTheUserAlone) {
  ASSERT_TRUE(store_measured(measured_machine()));
  struct stat info{};
  ASSERT_EQ(::stat(folder_.path("state/remuda").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(Store, ThatIsNotThereHoldsNothing) { EXPECT_EQ(loaded(machine()), machine()); }

TEST_F(Store, NewFiguresTakeThePlaceOfOldOnesAndOthersStay) {
  ASSERT_TRUE(store_measured(measured_machine()));
  Inventory again = machine();
  again.measured_devices = {figures("cpu:0", 11), figures("cpu:1", 12)};
  again.measured_links = {{.a = "cpu:1", .b = "cpu:0", .gbps = 8}};
  ASSERT_TRUE(store_measured(again));
  const Inventory now = loaded(machine());
  ASSERT_THAT(now.measured_devices, SizeIs(3));
  for (const auto& [id, gbps] : {std::pair{"cpu:0", 11.0}, {"cpu:1", 12.0}, {"GPU-1", 20.0}})
    EXPECT_THAT(now.measured_devices, ::testing::Contains(figures(id, gbps)));
  ASSERT_THAT(now.measured_links, SizeIs(1));
  EXPECT_EQ(now.measured_links[0].gbps, 8);
}

TEST_F(Store, StoredFiguresTakeThePlaceOfTheInventorysOwn) {
  ASSERT_TRUE(store_measured(measured_machine()));
  Inventory inventory = machine();
  inventory.measured_devices = {figures("cpu:0", 1)};
  inventory.measured_links = {{.a = "cpu:1", .b = "cpu:0", .gbps = 1}};
  inventory = loaded(inventory);
  EXPECT_THAT(inventory.measured_devices, SizeIs(2));
  ASSERT_THAT(inventory.measured_links, SizeIs(1));
  EXPECT_EQ(inventory.measured_links[0].gbps, 7);
}

TEST_F(Store, AnotherHostIsAnotherMachine) {
  ASSERT_TRUE(store_measured(measured_machine()));
  Inventory other = machine();
  other.host = "there";
  EXPECT_THAT(loaded(other).measured_devices, IsEmpty());
  other.measured_devices = {figures("cpu:0", 99)};
  ASSERT_TRUE(store_measured(other));
  EXPECT_EQ(loaded(machine()), measured_machine());
}

TEST_F(Store, ACpuOfOtherCoresIsAnotherDevice) {
  ASSERT_TRUE(store_measured(measured_machine()));
  Inventory split = machine();
  split.devices[0] = one_cpu(0, {0, 1});
  split.devices.erase(split.devices.begin() + 1);
  const Inventory now = loaded(split);
  ASSERT_THAT(now.measured_devices, SizeIs(1));
  EXPECT_EQ(now.measured_devices[0].id, "GPU-1");
  EXPECT_THAT(now.measured_links, IsEmpty());
}

TEST_F(Store, FiguresOfDevicesThatAreNotThereAreNotStored) {
  Inventory inventory = measured_machine();
  inventory.measured_devices.push_back(figures("cpu:9", 1));
  inventory.measured_links.push_back({.a = "cpu:0", .b = "cpu:9", .gbps = 1});
  ASSERT_TRUE(store_measured(inventory));
  EXPECT_EQ(loaded(machine()), measured_machine());
}

TEST_F(Store, GarbageIsOneSentenceAndStaysAsItIs) {
  for (const char* garbage : {"", "nonsense", "[1, 2]", R"({"version": 2, "devices": [], "links": []})",
                              R"({"version": 1, "devices": [{"key": 3}], "links": []})"}) {
    write(garbage);
    Inventory inventory = machine();
    const auto load = load_measured(inventory);
    ASSERT_FALSE(load) << garbage;
    EXPECT_EQ(load.error().kind, ErrorKind::usage);
    EXPECT_THAT(load.error().message, HasSubstr(file()));
    EXPECT_THAT(load.error().message, HasSubstr("delete it"));
    EXPECT_FALSE(check_measured_store()) << garbage;
    EXPECT_FALSE(store_measured(measured_machine())) << garbage;
    EXPECT_EQ(read_text(file()).value_or("gone"), garbage);
  }
}

TEST_F(Store, AFolderThatCannotBeMadeIsOneSentence) {
  folder_.write("state", "a file");
  const auto stored = store_measured(measured_machine());
  ASSERT_FALSE(stored);
  EXPECT_THAT(stored.error().message, HasSubstr(folder_.path("state/remuda")));
}

TEST_F(Store, WithoutXdgItStandsInTheHomeFolder) {
  const std::string home = env::get(env::home).value_or("");
  ::setenv("XDG_STATE_HOME", "relative", 1);  // to be ignored, says its specification
  ::setenv("HOME", folder_.path().c_str(), 1);
  const auto path = store_measured(measured_machine());
  home.empty() ? ::unsetenv("HOME") : ::setenv("HOME", home.c_str(), 1);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, folder_.path(".local/state/remuda/measured.json"));
}

}  // namespace
}  // namespace remuda::measure
