#include "cli/train/train_devices.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr int kCores = 4;

/// A machine with one NUMA node.
Result<Inventory> one_node(const probe::ProbeOptions& options) {
  if (options.cpu_devices > kCores) return usage_error("at most 4 CPU devices");
  Inventory inventory{.host = "lab"};
  for (int i = 0; i < std::max(1, options.cpu_devices); ++i)
    inventory.devices.push_back({.id = fmt::format("cpu:{}", i)});
  return inventory;
}

auto used(const std::string& id, double slowdown = 1) {
  return AllOf(Field(&job::DeviceSpec::use, id), Field(&job::DeviceSpec::slowdown, slowdown));
}

std::string refusal(const DeviceRequest& request) {
  const auto chosen = choose_devices(request, one_node);
  if (chosen) return "none";
  EXPECT_EQ(chosen.error().kind, ErrorKind::usage);
  return chosen.error().message;
}

TEST(TrainDevices, AreAllOfTheMachinesWhenNoneIsNamed) {
  const auto chosen = choose_devices({.cpu_devices = 3}, one_node);
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->devices, ElementsAre(used("cpu:0"), used("cpu:1"), used("cpu:2")));
  EXPECT_EQ(chosen->note, "");
}

TEST(TrainDevices, SplitTheCoresWhenTheJobNamesMoreCpusThanThereAre) {
  const auto chosen = choose_devices({.file = {{"cpu:2", 3.0}, {"cpu:0", 1.0}}}, one_node);
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->devices, ElementsAre(used("cpu:2", 3), used("cpu:0")));
  EXPECT_EQ(chosen->inventory.devices.size(), 3u);
  EXPECT_EQ(chosen->note, "cpu:2: one NUMA node, so its cores are split into 3 CPU devices");
}

TEST(TrainDevices, OfTheCommandLineReplaceTheFilesButKeepItsSlowdowns) {
  const auto chosen = choose_devices({.file = {{"cpu:0", 2.0}, {"cpu:1", 3.0}}, .line = {"cpu:2", "cpu:1"}}, one_node);
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->devices, ElementsAre(used("cpu:2"), used("cpu:1", 3)));
}

TEST(TrainDevices, StayUnsplitWhenOneIsEnough) {
  const auto chosen = choose_devices({.line = {"cpu:0"}}, one_node);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->inventory.devices.size(), 1u);
  EXPECT_EQ(chosen->note, "");
}

TEST(TrainDevices, BeyondTheCoresAreRefusedWithWhatIsPossible) {
  EXPECT_EQ(refusal({.line = {"cpu:0", "cpu:1", "cpu:4"}}),
            "device cpu:4 is not on this machine, which has cpu:0; at most 4 CPU devices");
}

TEST(TrainDevices, AreNotSplitFurtherThanTheUserSaid) {
  EXPECT_EQ(refusal({.file = {{"cpu:3"}}, .cpu_devices = 2}),
            "device cpu:3 is not on this machine, which has cpu:0, cpu:1");
}

TEST(TrainDevices, OfUnknownNamesAreRefused) {
  for (const char* id : {"gpu:0", "cpu", "cpu:", "cpu:-1", "cpu:x", "cpu:1x", "cpu:99999999999", "cpu:5000", ""})
    EXPECT_THAT(refusal({.line = {id, "cpu:1"}}), HasSubstr(fmt::format("device {} is not on this machine", id)));
  EXPECT_THAT(refusal({.line = {"cpu:01"}}), HasSubstr("device cpu:01 is not on this machine, which has cpu:0, cpu:1"));
}

TEST(TrainDevices, AreCpusSoFar) {
  const auto with_gpu = [](const probe::ProbeOptions&) -> Result<Inventory> {
    Inventory inventory{.host = "lab"};
    inventory.devices = {{.id = "GPU-1", .kind = DeviceKind::gpu, .model = "A GPU"}, {.id = "cpu:0"}};
    return inventory;
  };
  EXPECT_THAT(choose_devices({}, with_gpu)->devices, ElementsAre(used("cpu:0")));
  EXPECT_EQ(choose_devices({.line = {"gpu:0"}}, with_gpu).error().message,
            "device gpu:0 is no CPU (A GPU); training runs on CPU devices so far");
}

TEST(TrainDevices, MayHaveNoModel) {
  const auto recorded = [](const probe::ProbeOptions&) -> Result<Inventory> {
    return Inventory{.host = "lab", .devices = {{.id = "gpu:0", .kind = DeviceKind::gpu, .vendor = "NVIDIA"}}};
  };
  EXPECT_EQ(choose_devices({.line = {"gpu:0"}}, recorded).error().message,
            "device gpu:0 is no CPU (NVIDIA, model unknown); training runs on CPU devices so far");
  EXPECT_EQ(choose_devices({}, recorded).error().message, "lab has no CPU devices, on which training runs so far");
}

TEST(TrainDevices, NamedTwiceAreRefused) {
  EXPECT_EQ(refusal({.line = {"cpu:0", "cpu:1", "cpu:0"}}), "device cpu:0 is named twice; each may be used once");
}

TEST(TrainDevices, PassOnTheProbesError) {
  const auto chosen = choose_devices({}, [](const auto&) -> Result<Inventory> { return failed("no /sys"); });
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().message, "no /sys");
}

}  // namespace
}  // namespace remuda::cli
