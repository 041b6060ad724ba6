// The rules of placement, each tested on a recorded machine that shows it.
#include <gmock/gmock.h>

#include "place/testing/machine.h"

namespace remuda::place {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(RecordedMachine, OneGpuJobsLeaveTheLinkedPairWhole) {
  const Inventory inventory = recorded_machine("nv-3xa6000-nvlink-pair-plus-one");
  EXPECT_THAT(placed_on(inventory, {}), ElementsAre("gpu:2"));
  const Explanation pair = placed(inventory, {.count = 2}).explanation;
  EXPECT_THAT(pair.devices, ElementsAre("gpu:0", "gpu:1"));
  EXPECT_EQ(pair.ring->label, "NV4");
  EXPECT_THAT(pair.runners_up, SizeIs(2));
}

TEST(RecordedMachine, ALinkedPairBeatsOneNumaNode) {
  const Inventory inventory = recorded_machine("nv-4xa100pcie-nvlink-pairs-4numa");
  const Explanation first = placed(inventory, {.count = 2}).explanation;
  EXPECT_THAT(first.devices, ElementsAre("gpu:0", "gpu:1"));
  EXPECT_THAT(first.numa_nodes, SizeIs(2));
  EXPECT_THAT(placed_on(inventory, {.count = 2}, busy({1})), ElementsAre("gpu:2", "gpu:3"));
  EXPECT_THAT(placed_on(inventory, {}, busy({3})), ElementsAre("gpu:2"));
}

TEST(RecordedMachine, PairsNeedNotBeNeighboursByNumber) {
  const Inventory inventory = recorded_machine("nv-8gpu-nvlink-pairs-nv12");
  EXPECT_THAT(placed_on(inventory, {.count = 2}), ElementsAre("gpu:0", "gpu:2"));
  EXPECT_THAT(placed_on(inventory, {.count = 2}, busy({0})), ElementsAre("gpu:1", "gpu:3"));
  EXPECT_THAT(placed_on(inventory, {}, busy({4})), ElementsAre("gpu:5"));
}

TEST(RecordedMachine, OneNumaNodeWhereLinksTellNothing) {
  const Inventory inventory = recorded_machine("nv-8xrtx4090-sys");
  EXPECT_THAT(placed(inventory, {.count = 4}, busy({0})).explanation.devices,
              ElementsAre("gpu:4", "gpu:5", "gpu:6", "gpu:7"));
  EXPECT_THAT(placed(inventory, {.count = 2}, busy({0, 1, 3})).explanation.numa_nodes, ElementsAre(1));
  EXPECT_THAT(placed(inventory, {.count = 2}, busy({0, 1, 3, 4, 5, 6})).explanation.numa_nodes, ElementsAre(0, 1));
}

TEST(RecordedMachine, LikeModelsUnlessAskedOtherwise) {
  Inventory inventory = recorded_machine("nv-mixed-2x5090-3x4090");
  for (Device& gpu : inventory.devices) {
    gpu.model = gpu.index < 2 ? "NVIDIA GeForce RTX 5090" : "NVIDIA GeForce RTX 4090";
    gpu.multiprocessors = gpu.index < 2 ? 170 : 128;
    gpu.sm_clock_max_mhz = 2500;
  }
  EXPECT_THAT(placed_on(inventory, {.count = 2}), ElementsAre("gpu:3", "gpu:4"));
  EXPECT_THAT(placed_on(inventory, {.count = 2, .any_model = true}), ElementsAre("gpu:3", "gpu:4"))
      << "as fast, and alike";
  EXPECT_THAT(placed_on(inventory, {.count = 2}, busy({3})), ElementsAre("gpu:2", "gpu:4"));
  const Placement mixed = placed(inventory, {.count = 2, .any_model = true}, busy({3}));
  EXPECT_THAT(mixed.explanation.devices, ElementsAre("gpu:1", "gpu:2")) << "the best link, and unlike";
  ASSERT_THAT(mixed.shares, SizeIs(2));
  EXPECT_NEAR(mixed.shares[0], 170.0 / 298, 1e-9);
  EXPECT_THAT(placed_on(inventory, {.count = 2, .model = "*5090"}), ElementsAre("gpu:0", "gpu:1"));
  EXPECT_TRUE(refused(inventory, {.count = 4}).never);
  EXPECT_THAT(placed_on(inventory, {.count = 4, .any_model = true}), ElementsAre("gpu:1", "gpu:2", "gpu:3", "gpu:4"));
}

TEST(RecordedMachine, TheMeshFindsItsQuads) {
  const Inventory inventory = recorded_machine("nv-dgx1-v100-8gpu-4nic");
  EXPECT_THAT(placed_on(inventory, {.count = 4}), ElementsAre("gpu:0", "gpu:1", "gpu:2", "gpu:3"));
  EXPECT_THAT(placed_on(inventory, {.count = 2, .link = LinkNeed::nvlink}, busy({0, 1, 2, 3, 4})), SizeIs(2));
  EXPECT_GT(placed(inventory, {.count = 8}).explanation.ring->gbps, 20) << "a ring of NVLink through all eight";
}

TEST(RecordedMachine, TwoHivesAreNotMixed) {
  const Inventory inventory = recorded_machine("amd-8gpu-two-xgmi-hives-of-4");
  EXPECT_THAT(placed_on(inventory, {.count = 3}, busy({0, 1})), ElementsAre("gpu:4", "gpu:5", "gpu:6"));
  EXPECT_THAT(placed_on(inventory, {.count = 2}, busy({0, 1})), ElementsAre("gpu:2", "gpu:3"))
      << "the other hive stays whole for four";
  EXPECT_TRUE(refused(inventory, {.count = 5, .link = LinkNeed::nvlink}).never);
}

TEST(RecordedMachine, WithoutPeerAccessIsNoP2p) {
  const Inventory inventory = recorded_machine("nv-2x5090-phb-p2p-gns");
  EXPECT_THAT(refused(inventory, {.count = 2, .link = LinkNeed::p2p}).sentence, HasSubstr("not even 2 are"));
  EXPECT_THAT(placed_on(inventory, {.count = 2}), SizeIs(2));
}

TEST(RecordedMachine, OfACutGpuThePartitions) {
  const Inventory inventory = recorded_machine("made-mig-a100");
  const Refusal whole = refused(inventory, {});
  EXPECT_FALSE(whole.never) << "the whole GPU waits for a reset";
  EXPECT_THAT(whole.sentence, HasSubstr("must be reset to replace a faulty memory row"));
  EXPECT_THAT(placed(inventory, {.devices = {"partition:1"}}).devices, SizeIs(1));
  EXPECT_THAT(placed(inventory, {.share = 0.3}).explanation.devices, ElementsAre("partition:0"));
  const Refusal taken = refused(inventory, {.share = 0.3}, held_by_processes(inventory));
  EXPECT_THAT(taken.sentence, HasSubstr("is held by somebody (process 42001"));
}

}  // namespace
}  // namespace remuda::place
