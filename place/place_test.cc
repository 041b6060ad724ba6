#include "place/place.h"

#include <gmock/gmock.h>

#include "place/testing/machine.h"

namespace remuda::place {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Four GPUs: linked pairs 0-1 and 2-3.
Inventory two_pairs() {
  Inventory inventory = make_gpus(4);
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < a; ++b) join(inventory, a, b, (a == 1 && b == 0) || (a == 3 && b == 2) ? 100 : 10);
  return inventory;
}

Inventory with_cpus(Inventory inventory, int count) {
  for (int i = 0; i < count; ++i) {
    Device cpu{.id = "cpu:" + std::to_string(i), .kind = DeviceKind::cpu, .index = i, .model = "Some CPU"};
    cpu.numa_node = 0;
    cpu.memory_bytes = 64 * kGiB;
    inventory.devices.push_back(cpu);
  }
  return inventory;
}

/// One GPU partitioned in two, and a whole one.
Inventory cut_machine() {
  Inventory inventory = make_gpus(2);
  inventory.devices[0].partitioned = true;
  for (const auto& [id, gib] : {std::pair{"half", 20}, std::pair{"eighth", 5}}) {
    Device part{.id = id, .kind = DeviceKind::partition, .index = static_cast<int>(inventory.devices.size()) - 2};
    part.parent = "gpu:0";
    part.memory_bytes = gib * kGiB;
    inventory.devices.push_back(part);
  }
  return inventory;
}

TEST(Place, AsInTheHeader) {
  Inventory inventory = make_gpus(3);
  join_by(inventory, 0, 2, Path::sys, 4);
  std::vector<std::string> devices;
  std::string reason;
  const auto ask = [&] {
    const Layout layout(inventory);
    const Request two_linked{.count = 2, .link = LinkNeed::nvlink};
    const Answer answer = place(layout, two_linked, held_by_processes(inventory)).value();
    if (const auto* placement = std::get_if<Placement>(&answer))
      devices = placement->devices;
    else
      reason = std::get<Refusal>(answer).sentence;
  };
  ask();
  EXPECT_THAT(devices, ElementsAre("gpu:0", "gpu:2"));
  inventory.devices[2].status.processes = std::vector<Process>{{.pid = 7, .type = "compute"}};
  ask();
  EXPECT_THAT(reason, HasSubstr("no 2 of them are joined as asked"));
}

TEST(Place, TheFastestRingWins) {
  EXPECT_THAT(placed_on(two_pairs(), {.count = 2}), ElementsAre("gpu:0", "gpu:1"));
  EXPECT_THAT(placed_on(two_pairs(), {.count = 2}, busy({0})), ElementsAre("gpu:2", "gpu:3"));
}

TEST(Place, OneDeviceJobsTakeTheLeftover) {
  EXPECT_THAT(placed_on(two_pairs(), {}, busy({3})), ElementsAre("gpu:2"));
  EXPECT_THAT(placed_on(two_pairs(), {}, busy({0})), ElementsAre("gpu:1"));
}

TEST(Place, LikeDevicesUnlessAskedOtherwise) {
  Inventory inventory = two_pairs();
  inventory.devices[1].model = "Acme H100";
  inventory.devices[1].multiprocessors = 132;
  EXPECT_THAT(placed_on(inventory, {.count = 2}), ElementsAre("gpu:2", "gpu:3"));
  EXPECT_THAT(placed_on(inventory, {.count = 2}, busy({2})), ElementsAre("gpu:0", "gpu:3"));
  const Placement mixed = placed(inventory, {.count = 2, .any_model = true}, busy({2}));
  EXPECT_THAT(mixed.devices, ElementsAre("gpu:0", "gpu:1"));
  EXPECT_THAT(mixed.shares, ElementsAre(0.5, 0.5));
  EXPECT_THAT(mixed.explanation.shares_basis, HasSubstr("not known"));
  EXPECT_THAT(placed(inventory, {.count = 2, .any_model = true}).shares, IsEmpty()) << "like ones were free";
}

TEST(Place, LikeSpeedsBeforeUnlikeOnes) {
  Inventory inventory = make_gpus(3);
  for (int i = 0; i < 3; ++i)
    inventory.measured_devices.push_back({.id = inventory.devices[i].id, .gemm = {{"float32", i == 1 ? 50.0 : 100.0}}});
  EXPECT_THAT(placed_on(inventory, {.count = 2}), ElementsAre("gpu:0", "gpu:2"));
  EXPECT_THAT(placed(inventory, {.count = 2}, busy({0})).shares, ElementsAre(1.0 / 3, 2.0 / 3));
}

TEST(Place, OneNumaNodeAndOneRootBeforeTwo) {
  Inventory inventory = make_gpus(4);
  inventory.devices[0].numa_node = 1;
  inventory.devices[1].pcie_root = "pci0000:10";
  EXPECT_THAT(placed_on(inventory, {.count = 2}), ElementsAre("gpu:2", "gpu:3"));
}

TEST(Place, MemoryModelCapabilityAndConditionNarrow) {
  Inventory inventory = make_gpus(4);
  inventory.devices[0].memory_bytes = 24 * kGiB;
  inventory.devices[1].compute_capability = "7.5";
  inventory.devices[2].model = "Acme Other";
  const auto parse = [](const char* text) { return Where::parse(text).value(); };
  EXPECT_THAT(placed_on(inventory, {.memory_bytes = 40 * kGiB}), ElementsAre("gpu:1"));
  EXPECT_THAT(placed_on(inventory, {.model = "other"}), ElementsAre("gpu:2"));
  Request request{.count = 3, .any_model = true};
  request.capability = Capability::parse("bf16").value();
  EXPECT_THAT(placed_on(inventory, request), ElementsAre("gpu:0", "gpu:2", "gpu:3"));
  EXPECT_THAT(placed_on(inventory, {.where = parse("index > 2")}), ElementsAre("gpu:3"));
}

TEST(Place, NamedDevicesAreTheChoice) {
  Inventory inventory = two_pairs();
  EXPECT_THAT(placed_on(inventory, {.count = 2, .devices = {"0", "gpu:2"}}), ElementsAre("gpu:0", "gpu:2"));
  EXPECT_THAT(placed_on(inventory, {.count = 2, .devices = {"0", "2", "3"}}), ElementsAre("gpu:2", "gpu:3"));
  inventory.devices[2].model = "Acme Other";
  EXPECT_THAT(placed_on(inventory, {.count = 2, .devices = {"0", "2"}}), ElementsAre("gpu:0", "gpu:2"))
      << "to name unlike devices is to ask for them";
}

TEST(Place, LinksMayBeAskedFor) {
  Inventory inventory = make_gpus(4);
  join_by(inventory, 0, 1, Path::pix);
  join_by(inventory, 2, 3, Path::sys, 1);
  inventory.links[0].peer_access = PeerAccess::ok;
  for (int gpu : {0, 1}) inventory.devices[gpu].pcie_generation_max = 5;
  for (int gpu : {0, 1}) inventory.devices[gpu].pcie_width_max = 16;
  EXPECT_THAT(placed_on(inventory, {.count = 2}), ElementsAre("gpu:0", "gpu:1"))
      << "generation 5 is faster than one link";
  EXPECT_THAT(placed_on(inventory, {.count = 2, .link = LinkNeed::nvlink}), ElementsAre("gpu:2", "gpu:3"));
  EXPECT_THAT(placed_on(inventory, {.count = 2, .link = LinkNeed::p2p}), ElementsAre("gpu:0", "gpu:1"));
  EXPECT_THAT(placed_on(inventory, {.count = 2, .link = LinkNeed::p2p}, busy({0})), ElementsAre("gpu:2", "gpu:3"));
}

TEST(Place, SharesArePackedTightly) {
  const Inventory inventory = make_gpus(3);
  const std::vector<Held> held{{.device = "gpu:1", .share = 0.3}, {.device = "gpu:2", .share = 0.6}};
  EXPECT_THAT(placed_on(inventory, {.share = 0.3}, held), ElementsAre("gpu:2"));
  EXPECT_THAT(placed_on(inventory, {.share = 0.4}, held), ElementsAre("gpu:2"));
  EXPECT_THAT(placed_on(inventory, {.share = 0.5}, held), ElementsAre("gpu:1"));
  EXPECT_THAT(placed_on(inventory, {.share = 0.8}, held), ElementsAre("gpu:0"));
  EXPECT_THAT(placed_on(inventory, {}, held), ElementsAre("gpu:0"));
}

TEST(Place, ThreeTenthsFitBesideSevenTenths) {
  const std::vector<Held> held{
      {.device = "gpu:0", .share = 0.1}, {.device = "gpu:0", .share = 0.2}, {.device = "gpu:0", .share = 0.4}};
  EXPECT_THAT(placed_on(make_gpus(1), {.share = 0.3}, held), ElementsAre("gpu:0"));
}

TEST(Place, PartitionsAreTakenWhenMeant) {
  const Inventory inventory = cut_machine();
  EXPECT_THAT(placed_on(inventory, {}), ElementsAre("gpu:1"));
  EXPECT_THAT(placed_on(inventory, {.devices = {"half"}}), ElementsAre("half"));
  EXPECT_THAT(placed_on(inventory, {.share = 0.3}), ElementsAre("half")) << "the whole GPU stays whole";
  EXPECT_THAT(placed_on(inventory, {.share = 0.1}), ElementsAre("eighth")) << "the tightest fit";
  EXPECT_THAT(placed_on(inventory, {.share = 0.3}, {{.device = "half", .holder = "bob"}}), ElementsAre("gpu:1"));
  EXPECT_THAT(placed_on(inventory, {.where = Where::parse("type == 'mig' && memory >= 10Gi").value()}),
              ElementsAre("half"));
}

TEST(Place, CpuDevicesComeAfterGpus) {
  const Inventory inventory = with_cpus(make_gpus(1), 2);
  EXPECT_THAT(placed_on(inventory, {.cpu = true}), ElementsAre("gpu:0"));
  EXPECT_THAT(placed_on(inventory, {.count = 2, .cpu = true}), ElementsAre("cpu:0", "cpu:1"));
  EXPECT_THAT(placed_on(inventory, {.count = 2, .any_model = true, .cpu = true}), ElementsAre("gpu:0", "cpu:0"));
  EXPECT_THAT(placed_on(inventory, {.devices = {"cpu:1"}}), ElementsAre("cpu:1"));
}

TEST(Place, UnwellDevicesAreOut) {
  Inventory inventory = make_gpus(3);
  inventory.devices[0].status.xid = 79;
  inventory.devices[1].status.remap_pending = true;
  const Placement placement = placed(inventory, {});
  EXPECT_THAT(placement.devices, ElementsAre("gpu:2"));
  EXPECT_THAT(placement.explanation.rejected,
              Contains(Field(&Explanation::Rejected::reason, HasSubstr("fatal error, the driver's code 79"))));
  EXPECT_THAT(placement.explanation.left, IsEmpty());
}

TEST(Place, MemoryInUseCounts) {
  Inventory inventory = make_gpus(2);
  inventory.devices[0].status.memory_used_bytes = 30 * kGiB;
  inventory.devices[1].status.memory_used_bytes = 10 * kGiB;
  inventory.devices[1].status.memory_reserved_bytes = 1 * kGiB;
  EXPECT_THAT(placed_on(inventory, {.memory_bytes = 29 * kGiB}), ElementsAre("gpu:1"));
  EXPECT_FALSE(refused(inventory, {.memory_bytes = 30 * kGiB}).never);
}

TEST(Place, ExplainsItself) {
  const Explanation why = placed(two_pairs(), {.count = 2}, busy({3})).explanation;
  ASSERT_TRUE(why.ring);
  EXPECT_EQ(why.ring->gbps, 100);
  EXPECT_EQ(why.ring->a, "gpu:0");
  EXPECT_EQ(why.ring->b, "gpu:1");
  EXPECT_THAT(why.links, SizeIs(1));
  EXPECT_TRUE(why.links[0].measured);
  EXPECT_THAT(why.numa_nodes, ElementsAre(0));
  EXPECT_THAT(why.left, ElementsAre("gpu:2"));
  EXPECT_FALSE(why.left_pair);
  EXPECT_EQ(why.considered, 3);
  EXPECT_TRUE(why.exhaustive);
  ASSERT_THAT(why.runners_up, SizeIs(2));
  EXPECT_EQ(why.runners_up[0].lost, "a slower ring: 10 GB/s (?, gpu:0 to gpu:2) against 100 GB/s (?, gpu:0 to gpu:1)");
  ASSERT_THAT(why.rejected, SizeIs(1));
  EXPECT_EQ(why.rejected[0].reason, "is held by alice");
}

TEST(Place, SaysThatItKeepsModelsApart) {
  Inventory inventory = make_gpus(3);
  inventory.devices[2].model = "Acme H100";
  const Placement alike = placed(inventory, {.count = 2});
  EXPECT_TRUE(alike.explanation.one_model);
  EXPECT_THAT(explanation_text(alike),
              HasSubstr("considered  1 set, all there are of devices of one model (--any-model allows a mix)\n"));
  EXPECT_FALSE(placed(inventory, {.count = 2, .any_model = true}).explanation.one_model);
  EXPECT_FALSE(placed(inventory, {}).explanation.one_model) << "one device is of one model";
  EXPECT_FALSE(placed(inventory, {.count = 2}, busy({2})).explanation.one_model) << "it is not free";
}

TEST(Place, SaysWhatItDoesNotKnow) {
  Inventory inventory = make_gpus(2);
  for (Device& gpu : inventory.devices) gpu.model.clear();
  const Explanation why = placed(inventory, {.count = 2, .memory_bytes = kGiB}).explanation;
  EXPECT_FALSE(why.ring);
  EXPECT_THAT(why.notes, Contains(HasSubstr("models are not recorded")));
  EXPECT_THAT(why.notes, Contains(HasSubstr("gpu:1 is in use is not known")));
}

TEST(Place, MoreThanSixteenAreSearchedAroundEach) {
  Inventory inventory = make_gpus(24);
  for (int a = 0; a < 24; ++a)
    for (int b = 0; b < a; ++b) join(inventory, a, b, a / 8 == b / 8 ? 50 : 10);
  const Placement eight = placed(inventory, {.count = 8}, busy({0, 9}));
  EXPECT_THAT(eight.explanation.devices,
              ElementsAre("gpu:16", "gpu:17", "gpu:18", "gpu:19", "gpu:20", "gpu:21", "gpu:22", "gpu:23"));
  EXPECT_FALSE(eight.explanation.exhaustive);
  EXPECT_THAT(eight.explanation.notes, Contains(HasSubstr("more than 16 devices suit")));
  const Placement twenty = placed(inventory, {.count = 20});
  EXPECT_THAT(twenty.devices, SizeIs(20));
  EXPECT_THAT(twenty.explanation.notes, Contains(HasSubstr("best tree")));
}

TEST(Place, RefusesRequestsThatMakeNoSense) {
  const Inventory inventory = make_gpus(2);
  const Layout layout(inventory);
  for (const Request& request :
       {Request{.count = 0}, Request{.count = 257}, Request{.share = 0}, Request{.share = 1.5},
        Request{.memory_bytes = -1}, Request{.count = 2, .devices = {"0"}}, Request{.devices = {"7"}},
        Request{.count = 2, .devices = {"0", "gpu:0"}}, Request{.model = std::string(300, '*')}}) {
    const auto answer = place(layout, request, {});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::usage);
  }
}

}  // namespace
}  // namespace remuda::place
