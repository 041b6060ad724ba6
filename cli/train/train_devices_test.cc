#include "cli/train/train_devices.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kCores = 4;

/// A machine with one NUMA node.
Result<Inventory> one_node(const probe::ProbeOptions& options) {
  if (options.cpu_devices > kCores) return usage_error("at most 4 CPU devices");
  Inventory inventory{.host = "lab"};
  for (int i = 0; i < std::max(1, options.cpu_devices); ++i)
    inventory.devices.push_back({.id = fmt::format("cpu:{}", i), .index = i});
  return inventory;
}

auto used(const std::string& id, double slowdown = 1, bool shared = false) {
  return testing::Eq(job::DeviceSpec{id, slowdown, shared});
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

TEST(TrainDevices, SayWhichRolesTheRunIsWithout) {
  const std::vector<job::DeviceSpec> file{{"cpu:0"}, {.use = "cpu:1", .role = balance::Role::state}};
  const auto note = [&](std::vector<std::string> line) {
    return choose_devices({.file = file, .line = std::move(line), .cpu_devices = 3}, one_node)->note;
  };
  EXPECT_EQ(note({}), "");
  EXPECT_EQ(note({"cpu:2", "cpu:1"}), "") << "it goes with the device";
  EXPECT_EQ(
      note({"cpu:0", "cpu:2"}),
      "the run is without the role of cpu:1 (state), which the file names and the run does not use: a role belongs "
      "to the device of its [[device]]");
  const auto granted = choose_devices({.file = file, .cpu_devices = 3, .granted = {"cpu:0", "cpu:2"}}, one_node);
  EXPECT_THAT(granted->note, HasSubstr("without the role of cpu:1 (state)"));
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

/// One NVIDIA GPU, a card of a maker that libtorch does not know, and two CPU devices.
Result<Inventory> with_gpus(const probe::ProbeOptions&) {
  return Inventory{.host = "lab",
                   .devices = {{.id = "GPU-7d1b", .kind = DeviceKind::gpu, .vendor = "NVIDIA", .uuid = "GPU-7d1b"},
                               {.id = "0000:41:00.0", .kind = DeviceKind::gpu, .index = 1, .vendor = "Matrox"},
                               {.id = "cpu:0"},
                               {.id = "cpu:1", .index = 1}}};
}

std::string refusal_with_gpus(const DeviceRequest& request) {
  const auto chosen = choose_devices(request, with_gpus);
  return chosen ? "none" : chosen.error().message;
}

TEST(TrainDevices, MayBeOfAnyKindAndAreNamedByLabel) {
  EXPECT_THAT(choose_devices({.line = {"GPU-7d1b", "cpu:0"}}, with_gpus)->devices,
              ElementsAre(used("gpu:0"), used("cpu:0")));
  EXPECT_THAT(choose_devices({.file = {{"gpu:0", 2}}, .line = {"0"}}, with_gpus)->devices,
              ElementsAre(used("gpu:0", 2)));
  EXPECT_EQ(
      refusal_with_gpus({.line = {"gpu:0", "GPU-7d1b"}}),
      "device GPU-7d1b is named twice; for several ranks on it, write shared = true in each [[device]] that names it");
  EXPECT_EQ(refusal_with_gpus({.line = {"gpu:2"}}),
            "device gpu:2 is not on this machine, which has gpu:0, gpu:1, cpu:0, cpu:1");
}

TEST(TrainDevices, ThatLibtorchHasNoNameForAreRefused) {
  EXPECT_EQ(refusal_with_gpus({.line = {"gpu:1"}}),
            "device gpu:1 (Matrox, model unknown) is of a kind that libtorch has no name for");
}

TEST(TrainDevices, ThatADriverDoesNotShowHaveItsReason) {
  const auto blind = [](const probe::ProbeOptions& options) {
    auto machine = with_gpus(options);
    std::erase_if(machine->devices, [](const Device& device) { return device.kind == DeviceKind::gpu; });
    machine->probes = {{"nvml", 0, "versions differ", true}};
    return machine;
  };
  const auto refused = choose_devices({.line = {"gpu:0"}}, blind);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "device gpu:0 is not on this machine, which has cpu:0, cpu:1; others may be there that cannot be seen "
            "(nvml: versions differ)");
  const auto chosen = choose_devices({}, blind);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->note, "only CPU devices are used: others may be there that cannot be seen (nvml: versions differ)");
}

TEST(TrainDevices, AreOnlyCpusWhereNoneIsNamed) {
  const auto chosen = choose_devices({}, with_gpus);
  ASSERT_TRUE(chosen);
  EXPECT_THAT(chosen->devices, ElementsAre(used("cpu:0"), used("cpu:1")));
  EXPECT_EQ(chosen->note, "only CPU devices are used: -n asks for gpu:0, gpu:1, --devices names them");
  const auto only_gpus = [](const probe::ProbeOptions& options) {
    auto inventory = with_gpus(options);
    inventory->devices.resize(2);
    return inventory;
  };
  EXPECT_EQ(choose_devices({}, only_gpus).error().message,
            "lab has no CPU device; name others with --devices, or ask for some with -n");
}

TEST(TrainDevices, AreThoseOfAnAllocationWhereNoneIsNamed) {
  EXPECT_THAT(choose_devices({.allocated = {"0"}}, with_gpus)->devices, ElementsAre(used("gpu:0")));
  EXPECT_THAT(choose_devices({.line = {"cpu:1"}, .allocated = {"0"}}, with_gpus)->devices, ElementsAre(used("cpu:1")));
}

const CallersLease kLease{.job = 7, .devices = {"GPU-7d1b", "cpu:3"}, .cpus = {{}, {6, 7}}};

TEST(TrainDevices, OfALeaseAreExactlyItsOwn) {
  const auto chosen = choose_devices({.file = {{"cpu:0", 2}, {"cpu:3", 4}}, .lease = kLease}, with_gpus);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_THAT(chosen->devices, ElementsAre(used("gpu:0"), used("cpu:3", 4)));
  EXPECT_EQ(chosen->inventory.find("cpu:3")->cores.value(), (std::vector{6, 7})) << "as the keeper has seen them";
  EXPECT_FALSE(chosen->inventory.find("cpu:0")) << "another job may have it";
}

TEST(TrainDevices, OfALeaseMayBeChosenAmong) {
  EXPECT_THAT(choose_devices({.line = {"cpu:3"}, .lease = kLease}, with_gpus)->devices, ElementsAre(used("cpu:3")));
  for (const char* other : {"cpu:0", "gpu:1", "nonsense"})
    EXPECT_EQ(refusal_with_gpus({.line = {other}, .lease = kLease}),
              fmt::format("device {} is not held by job 7, in which this runs and which holds gpu:0, cpu:3", other));
}

TEST(TrainDevices, OfALeaseMustBeThere) {
  EXPECT_EQ(refusal_with_gpus({.lease = CallersLease{8, {"GPU-gone"}, {{}}}}),
            "job 8 holds GPU-gone, which is not there any more: see remuda list");
}

TEST(TrainDevices, OfALeaseOfARecordedMachineAreAsRecorded) {
  const CallersLease lease{.job = 7, .devices = {"cpu:1"}, .cpus = {{}}};
  EXPECT_TRUE(choose_devices({.lease = lease, .live = false}, with_gpus)->inventory.find("cpu:0"));
}

TEST(TrainDevices, NamedTwiceAreRefusedUnlessTheFileSharesThem) {
  EXPECT_EQ(refusal({.line = {"cpu:0", "cpu:1", "cpu:0"}}), job::named_twice("cpu:0"));
  EXPECT_EQ(refusal({.file = {{"cpu:0"}}, .line = {"cpu:0", "cpu:0"}}), job::named_twice("cpu:0"));
  EXPECT_EQ(refusal_with_gpus({.file = {{"gpu:0", 1, true}, {"0"}}}), job::named_twice("0")) << "two of its names";
  EXPECT_EQ(refusal_with_gpus({.file = {{"gpu:0", 1, true}, {"0", 2, true}}, .line = {"0", "gpu:0", "GPU-7d1b"}}),
            job::named_twice("GPU-7d1b"))
      << "the file has it for two ranks";
}

const std::vector<job::DeviceSpec> kShared{{"gpu:0", 1, true}, {"cpu:0", 2}, {"0", 3, true}};

TEST(TrainDevices, ThatRanksShareHaveASlowdownForEachRank) {
  EXPECT_THAT(choose_devices({.file = kShared}, with_gpus)->devices,
              ElementsAre(used("gpu:0", 1, true), used("cpu:0", 2), used("gpu:0", 3, true)));
  EXPECT_THAT(choose_devices({.file = kShared, .line = {"gpu:0", "cpu:1", "gpu:0"}}, with_gpus)->devices,
              ElementsAre(used("gpu:0", 1, true), used("cpu:1"), used("gpu:0", 3, true)));
  EXPECT_THAT(choose_devices({.file = kShared, .line = {"gpu:0"}}, with_gpus)->devices,
              ElementsAre(used("gpu:0", 1, true)));
}

TEST(TrainDevices, OfALeaseHaveAsManyRanksAsTheFileNamesForThem) {
  const auto ranks = ElementsAre(used("gpu:0", 1, true), used("gpu:0", 3, true), used("cpu:1"));
  EXPECT_THAT(choose_devices({.file = kShared, .granted = {"gpu:0", "cpu:1"}}, with_gpus)->devices, ranks);
  const CallersLease lease{.job = 7, .devices = {"GPU-7d1b", "cpu:1"}, .cpus = {{}, {1}}};
  EXPECT_THAT(choose_devices({.file = kShared, .lease = lease}, with_gpus)->devices, ranks);
}

TEST(TrainDevices, ThatPermitOneProcessOnlyAreNotShared) {
  const auto exclusive = [](const probe::ProbeOptions& options) {
    auto inventory = with_gpus(options);
    inventory->devices[0].compute_mode = ComputeMode::exclusive;
    return inventory;
  };
  EXPECT_EQ(choose_devices({.file = kShared}, exclusive).error().message,
            "device 0 is in exclusive compute mode, which permits one process: two ranks cannot share it");
  EXPECT_TRUE(choose_devices({.file = kShared, .line = {"gpu:0"}}, exclusive));
}

TEST(TrainDevices, PassOnTheProbesError) {
  const auto chosen = choose_devices({}, [](const auto&) -> Result<Inventory> { return failed("no /sys"); });
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().message, "no /sys");
}

}  // namespace
}  // namespace remuda::cli
