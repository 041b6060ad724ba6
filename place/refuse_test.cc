#include <gmock/gmock.h>

#include "place/testing/machine.h"

namespace remuda::place {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string never(const Inventory& inventory, const Request& request) {
  const Refusal refusal = refused(inventory, request);
  EXPECT_TRUE(refusal.never);
  EXPECT_THAT(refusal.blockers, IsEmpty());
  return refusal.sentence;
}

TEST(Never, SaysHowNearTheMachineComes) {
  Inventory inventory = make_gpus(4);
  inventory.devices[0].memory_bytes = inventory.devices[1].memory_bytes = 24 * kGiB;
  EXPECT_EQ(never(inventory, {.count = 3, .memory_bytes = 40 * kGiB}),
            "2 of the 4 GPUs have 40 GiB or more; 3 are wanted");
  EXPECT_EQ(never(inventory, {.memory_bytes = 80 * kGiB}),
            "none of the 4 GPUs has 80 GiB or more (the largest has 40 GiB); 1 is wanted");
  EXPECT_EQ(never(inventory, {.model = "H100*"}),
            "none of the 4 GPUs is called 'H100*' (there: Acme A100-SXM4-40GB); 1 is wanted");
  EXPECT_EQ(
      never(inventory, {.model = "sxm4"}),
      "none of the 4 GPUs is called 'sxm4' (there: Acme A100-SXM4-40GB; '*sxm4*' would be one of them); 1 is wanted");
  EXPECT_EQ(never(inventory, {.count = 5}), "there are 4 GPUs on box; 5 are wanted");
  Request request{.count = 3, .memory_bytes = 40 * kGiB, .model = "*A100*"};
  request.capability = Capability::parse("bf16").value();
  EXPECT_EQ(never(inventory, request),
            "2 of the 4 GPUs are called '*A100*' and have 40 GiB or more and can do bf16; 3 are wanted");
  EXPECT_EQ(never(make_gpus(1), {.memory_bytes = 80 * kGiB}), "the only GPU, gpu:0, has only 40 GiB; 1 is wanted");
}

TEST(Never, WithoutAGpu) {
  Inventory inventory = make_gpus(0);
  EXPECT_EQ(never(inventory, {}), "there is no GPU on box; 1 is wanted");
  inventory.devices.push_back({.id = "cpu:0", .kind = DeviceKind::cpu});
  EXPECT_EQ(never(inventory, {}), "there is no GPU on box; 1 is wanted (--cpu allows CPU devices)");
}

/// What a machine says whose driver does not answer: see Inventory::unseen().
ProbeReport blind_probe() { return {"nvml", 0, "library and kernel module are of different versions", true}; }

TEST(NotNow, WhereADriverDoesNotAnswerThereMayBeGpus) {
  Inventory inventory = make_gpus(0);
  inventory.probes = {{"amd", 0, "no /sys/class/kfd"}, blind_probe()};
  const Refusal refusal = refused(inventory, {});
  EXPECT_FALSE(refusal.never);
  EXPECT_EQ(refusal.sentence,
            "no GPU of box can be seen (nvml: library and kernel module are of different versions); 1 is wanted");
  inventory.devices.push_back({.id = "cpu:0", .kind = DeviceKind::cpu});
  EXPECT_THAT(refused(inventory, {}).sentence, HasSubstr("1 is wanted (--cpu allows CPU devices)"));
}

TEST(NotNow, WhereOneOfTwoDriversDoesNotAnswerThereMayBeMoreGpus) {
  Inventory inventory = make_gpus(2);
  inventory.probes = {{"amd", 2, ""}, blind_probe()};
  const Refusal refusal = refused(inventory, {.count = 3});
  EXPECT_FALSE(refusal.never);
  EXPECT_EQ(refusal.sentence,
            "there are 2 GPUs on box; 3 are wanted; others may be there that cannot be seen (nvml: library and kernel "
            "module are of different versions)");
  EXPECT_FALSE(refused(inventory, {.memory_bytes = 80 * kGiB}).never);
  EXPECT_EQ(placed_on(inventory, {.count = 2}), (std::vector<std::string>{"gpu:0", "gpu:1"}));
}

TEST(Never, SaysHowTheCpuBecomesSeveralDevices) {
  Inventory inventory = make_gpus(1);
  inventory.devices.push_back({.id = "cpu:0", .kind = DeviceKind::cpu, .cores = std::vector{0, 1, 2}});
  inventory.source = "live";
  EXPECT_EQ(never(inventory, {.count = 4, .any_model = true, .cpu = true}),
            "there are 2 devices on box; 4 are wanted (--cpu-devices 3 splits the CPU into so many)");
  EXPECT_EQ(never(inventory, {.count = 5, .any_model = true, .cpu = true}), "there are 2 devices on box; 5 are wanted")
      << "it has three cores";
  inventory.source = "nvidia-smi topo -m";
  EXPECT_EQ(never(inventory, {.count = 4, .any_model = true, .cpu = true}), "there are 2 devices on box; 4 are wanted")
      << "a recording is as it is";
}

TEST(Never, OfUnlikeModels) {
  Inventory inventory = make_gpus(5);
  inventory.devices[0].model = inventory.devices[1].model = "Acme H100";
  EXPECT_EQ(never(inventory, {.count = 4}),
            "the 5 GPUs that suit are of unlike models, at most 3 of one; 4 are wanted (--any-model allows a mix)");
}

TEST(Never, WithoutTheLinks) {
  Inventory inventory = make_gpus(4);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < a; ++b) join_by(inventory, b, a, Path::sys, a == 1 || (a == 3 && b == 2) ? 4 : 0);
  EXPECT_EQ(never(inventory, {.count = 4, .link = LinkNeed::nvlink}),
            "no 4 of the 4 GPUs that suit are joined by NVLink or its like in a ring; at most 2 are");
}

TEST(Never, DoesNotTakeWhatIsNotRecordedForNothing) {
  Inventory inventory = make_gpus(3);
  for (Device& gpu : inventory.devices) gpu.memory_bytes = Missing{.detail = "not in the recording"};
  EXPECT_EQ(never(inventory, {.memory_bytes = 24 * kGiB}),
            "the memory of the 3 GPUs is not recorded, so it is not known whether any has 24 GiB or more; 1 is wanted");
  inventory.devices[0].memory_bytes = 16 * kGiB;
  EXPECT_EQ(
      never(inventory, {.memory_bytes = 24 * kGiB}),
      "none of the 1 GPU whose memory is recorded has 24 GiB or more (the largest has 16 GiB), and the memory of 2 "
      "is not recorded; 1 is wanted");
  inventory.devices[0].memory_bytes = inventory.devices[1].memory_bytes = 24 * kGiB;
  EXPECT_EQ(never(inventory, {.count = 3, .memory_bytes = 24 * kGiB}),
            "2 of the 2 GPUs whose memory is recorded have 24 GiB or more, and the memory of 1 is not recorded; 3 are "
            "wanted");
  const Refusal refusal = refused(inventory, {.count = 3, .memory_bytes = 24 * kGiB});
  EXPECT_THAT(refusal_text(refusal), HasSubstr("gpu:2 has no recorded memory size (not in the recording)"));
  Inventory one = make_gpus(1);
  one.devices[0].memory_bytes = Missing{.detail = "not in the recording"};
  EXPECT_EQ(never(one, {.memory_bytes = 24 * kGiB}),
            "the only GPU, gpu:0, has no recorded memory size (not in the recording); 1 is wanted");
}

TEST(Never, NamesAllThatIsNotRecorded) {
  Inventory inventory = make_gpus(2);
  for (Device& gpu : inventory.devices) {
    gpu.model = "";
    gpu.compute_capability = Missing{.detail = "no"};
    gpu.numa_node = Missing{.detail = "no"};
  }
  Request request{.model = "A100*"};
  request.capability = Capability::parse("bf16").value();
  EXPECT_EQ(never(inventory, request),
            "the compute capability and model of the 2 GPUs are not recorded, so it is not known whether any is called "
            "'A100*' and can do bf16; 1 is wanted");
  EXPECT_EQ(never(inventory, {.where = Where::parse("!(numaNode == 0)").value()}),
            "the numaNode of the 2 GPUs is not recorded, so it is not known whether any meets !(numaNode == 0); 1 is "
            "wanted");
  inventory.devices[0].memory_bytes = inventory.devices[1].memory_bytes = 1 * kGiB;
  request.memory_bytes = 2 * kGiB;
  EXPECT_THAT(never(inventory, request), HasSubstr("the largest has 1 GiB")) << "what is certain decides";
}

TEST(Never, DoesNotTakeLinksThatAreNotRecordedForNone) {
  EXPECT_EQ(
      never(make_gpus(2), {.count = 2, .link = LinkNeed::p2p}),
      "it is not recorded whether any of the 2 GPUs that suit are joined by direct access to each other's memory; "
      "2 are wanted");
  Inventory inventory = make_gpus(3);
  for (int a = 0; a < 2; ++a) join_by(inventory, a, 2, Path::sys);
  EXPECT_EQ(
      never(inventory, {.count = 2, .link = LinkNeed::nvlink}),
      "no 2 of the 3 GPUs that suit are joined by NVLink or its like in a ring, as far as is recorded: of 1 of the 3 "
      "pairs it is not; not even 2 are");
}

TEST(Never, APartOfUnknownSizeIsNotTakenForAWholeDevice) {
  Inventory inventory = make_gpus(1);
  inventory.devices[0].partitioned = true;
  Device part{.id = "MIG-0", .kind = DeviceKind::partition, .index = 0, .parent = "gpu:0"};
  part.model = inventory.devices[0].model;
  inventory.devices.push_back(part);
  EXPECT_THAT(refusal_text(refused(inventory, {.share = 0.5})),
              HasSubstr("is a part of its GPU whose size is not recorded"));
  inventory.devices[1].memory_bytes = 20 * kGiB;
  EXPECT_THAT(placed_on(inventory, {.share = 0.5}), testing::ElementsAre("MIG-0"));
}

TEST(Never, WhenCutIntoPartitions) {
  Inventory inventory = make_gpus(1);
  inventory.devices[0].partitioned = true;
  EXPECT_THAT(never(inventory, {}), HasSubstr("the only GPU, gpu:0, is cut into partitions"));
  inventory = make_gpus(2);
  inventory.devices[0].partitioned = true;
  const Refusal refusal = refused(inventory, {.count = 2});
  EXPECT_TRUE(refusal.never);
  EXPECT_EQ(refusal.sentence, "1 of the 2 GPUs can be taken; 2 are wanted");
  EXPECT_THAT(refusal_text(refusal), HasSubstr("gpu:0 is cut into partitions"));
}

TEST(NotNow, SaysWhoHoldsWhatAndTheEarliestStart) {
  const Inventory inventory = make_gpus(3);
  const std::vector<Held> held{{.device = "gpu:0", .holder = "alice", .since_s = 1000, .until_s = 5000},
                               {.device = "gpu:1", .holder = "bob", .until_s = 3000},
                               {.device = "gpu:2", .holder = "carol\x1b[31m"}};
  const Refusal refusal = refused(inventory, {.count = 2}, held);
  EXPECT_FALSE(refusal.never);
  EXPECT_EQ(
      refusal.sentence,
      "2 are wanted, and none of the 3 GPUs that suit is free: gpu:0 is held by alice, gpu:1 is held by bob, gpu:2 "
      "is held by carol?[31m");
  EXPECT_THAT(refusal.blockers, SizeIs(3));
  EXPECT_EQ(refused(inventory, {.devices = {"gpu:0"}}, held).sentence,
            "1 is wanted, and the only GPU that suits is not free: gpu:0 is held by alice");
  EXPECT_EQ(refusal.earliest_s, 5000);
  EXPECT_EQ(refused(inventory, {}, held).earliest_s, 3000);
  EXPECT_EQ(refused(inventory, {.count = 3}, held).earliest_s, std::nullopt) << "nobody knows when carol ends";
  const std::string text = refusal_text(refusal);
  EXPECT_THAT(text, HasSubstr("gpu:0: alice, since 1970-01-01 00:16 UTC, until 1970-01-01 01:23 UTC"));
  EXPECT_THAT(text, HasSubstr("earliest    1970-01-01 01:23 UTC"));
}

TEST(NotNow, SharesThatEndOneByOne) {
  const std::vector<Held> held{{.device = "gpu:0", .share = 0.5, .holder = "alice", .until_s = 10},
                               {.device = "gpu:0", .share = 0.3, .holder = "bob", .until_s = 20}};
  const Refusal refusal = refused(make_gpus(1), {.share = 0.6}, held);
  EXPECT_EQ(refusal.earliest_s, 10);
  EXPECT_THAT(refusal.sentence, HasSubstr("is held by alice, bob, which leaves 20 %"));
  EXPECT_EQ(refused(make_gpus(1), {}, held).earliest_s, 20);
}

TEST(NotNow, UnwellDevicesMayComeBack) {
  Inventory inventory = make_gpus(2);
  inventory.devices[1].status.xid = 79;
  const Refusal refusal = refused(inventory, {.count = 2});
  EXPECT_FALSE(refusal.never);
  ASSERT_THAT(refusal.blockers, SizeIs(1));
  EXPECT_THAT(refusal.blockers[0].holder, HasSubstr("code 79"));
  EXPECT_EQ(refusal.earliest_s, std::nullopt);
}

TEST(NotNow, ALostDeviceOfUnknownMemoryMayBeWhatIsWanted) {
  Inventory inventory = make_gpus(2);
  inventory.devices[1].memory_bytes = Missing{MissingReason::lost, "fell off the bus"};
  const Refusal refusal = refused(inventory, {.count = 2, .memory_bytes = 40 * kGiB});
  EXPECT_FALSE(refusal.never);
  EXPECT_THAT(refusal.sentence, HasSubstr("is lost: fell off the bus"));
}

TEST(NotNow, EnoughAreFreeButNotTogether) {
  Inventory inventory = make_gpus(4);
  inventory.devices[0].model = "Acme H100";
  const Refusal refusal = refused(inventory, {.count = 2}, busy({2, 3}));
  EXPECT_EQ(refusal.sentence, "2 of the 4 GPUs that suit are free, but no 2 of them are alike; 2 are wanted");
}

TEST(NotNow, ALostDeviceThatTellsNothingMayBeWhatIsWanted) {
  Inventory inventory = make_gpus(2);
  Device& lost = inventory.devices[1];
  lost = {.id = lost.id, .kind = DeviceKind::gpu, .index = 1};
  lost.memory_bytes = Missing{MissingReason::lost, "fell off the bus"};
  const Refusal refusal = refused(inventory, {.count = 2, .memory_bytes = 40 * kGiB, .model = "*A100*"});
  EXPECT_FALSE(refusal.never);
  EXPECT_THAT(refusal.sentence, HasSubstr("is lost: fell off the bus"));
  EXPECT_TRUE(refused(inventory, {.count = 3}).never);
}

}  // namespace
}  // namespace remuda::place
