// Cores and memory of the host as a part of a request.
#include "place/host.h"

#include <gmock/gmock.h>

#include "place/testing/machine.h"

namespace remuda::place {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Two GPUs on two NUMA nodes of four cores and 32 GiB each.
Inventory two_nodes() {
  Inventory inventory = make_gpus(2);
  for (int node = 0; node < 2; ++node) {
    const std::vector<int> cores{4 * node, 4 * node + 1, 4 * node + 2, 4 * node + 3};
    inventory.devices[node].cores = cores;
    Device cpu{.id = "cpu:" + std::to_string(node), .kind = DeviceKind::cpu, .index = node};
    cpu.cores = cores;
    cpu.memory_bytes = 32 * kGiB;
    inventory.devices.push_back(cpu);
  }
  return inventory;
}

Held part(const std::string& holder, std::vector<int> cores, int64_t bytes = 0) {
  return host_part(std::move(cores), {.host_memory_bytes = bytes}, holder);
}

Request on(const std::string& device, int cores, int64_t bytes = 0) {
  return {.devices = {device}, .cores = cores, .host_memory_bytes = bytes};
}

TEST(Host, GivesTheCoresNextToTheDevices) {
  EXPECT_THAT(placed(two_nodes(), on("gpu:1", 2)).cores, ElementsAre(4, 5));
  EXPECT_THAT(placed(two_nodes(), on("gpu:1", 2), {part("ada", {4, 6})}).cores, ElementsAre(5, 7));
  EXPECT_THAT(placed(two_nodes(), on("gpu:1", 5)).cores, ElementsAre(0, 4, 5, 6, 7)) << "and one that is farther";
  EXPECT_THAT(placed(two_nodes(), on("gpu:1", 0)).cores, IsEmpty());
  EXPECT_THAT(explanation_text(placed(two_nodes(), on("gpu:0", 3))), HasSubstr("cores       0-2 of the host\n"));
  EXPECT_EQ(to_json(placed(two_nodes(), on("gpu:0", 2)))["cores"], (Json{0, 1}));
}

TEST(Host, IsNeverAsLarge) {
  EXPECT_EQ(refused(two_nodes(), on("gpu:0", 9)).sentence, "the host has 8 cores; 9 are wanted");
  EXPECT_EQ(refused(two_nodes(), on("gpu:0", 1, 65 * kGiB)).sentence,
            "the host has 64 GiB of memory; 65 GiB are wanted");
  EXPECT_TRUE(refused(two_nodes(), on("gpu:0", 9)).never);
  EXPECT_TRUE(refused(make_gpus(1), {.cores = 1}).never);
  EXPECT_EQ(refused(make_gpus(1), {.cores = 1}).sentence,
            "the cores of the host are not recorded, so none can be kept for a job");
  EXPECT_EQ(refused(make_gpus(1), {.host_memory_bytes = 1}).sentence,
            "the memory of the host is not recorded, so none can be kept for a job");
}

TEST(Host, SaysWhoHoldsItNow) {
  Held ada = part("ada (job 1)", {0, 1, 2, 3, 4, 5}, 40 * kGiB), bob = part("bob (job 2)", {6}, 8 * kGiB);
  ada.until_s = 500;
  const Refusal cores = refused(two_nodes(), on("gpu:0", 2), {ada, bob});
  EXPECT_FALSE(cores.never);
  EXPECT_EQ(cores.sentence,
            "2 cores of the host are wanted, and 1 of 8 is free: ada (job 1) holds 6, bob (job 2) holds 1");
  EXPECT_EQ(cores.earliest_s, 500);
  ASSERT_THAT(cores.blockers, SizeIs(2));
  EXPECT_EQ(cores.blockers[0].device, "6 cores and 40 GiB of the host");
  EXPECT_EQ(cores.blockers[0].holder, "ada (job 1)");
  const Refusal memory = refused(two_nodes(), on("gpu:0", 1, 20 * kGiB), {ada, bob});
  EXPECT_EQ(memory.sentence,
            "20 GiB of the host's memory are wanted, and 16 GiB of 64 GiB are free: ada (job 1) holds 40 GiB, bob "
            "(job 2) holds 8 GiB");
  EXPECT_EQ(refused(two_nodes(), on("gpu:0", 8), {ada, bob}).earliest_s, std::nullopt) << "bob has no end";
}

TEST(Host, IsNamedWhereDevicesAreWantingToo) {
  Held ada = part("ada (job 1)", {0, 1, 2, 3, 4, 5});
  ada.until_s = 900;
  const std::vector<Held> held{{.device = "gpu:0", .holder = "ada (job 1)", .until_s = 500}, ada};
  const Refusal refusal = refused(two_nodes(), on("gpu:0", 4), held);
  EXPECT_THAT(refusal.sentence, HasSubstr("is not free: gpu:0 is held by ada (job 1); 4 cores of the host"));
  EXPECT_EQ(refusal.earliest_s, 900) << "the later of both";
}

TEST(Host, TheCoresOfACpuDeviceThatIsHeldAreTaken) {
  const std::vector<Held> held{{.device = "cpu:0", .share = 0.5, .holder = "ada"}};
  EXPECT_THAT(placed(two_nodes(), on("gpu:0", 2), held).cores, ElementsAre(4, 5));
  EXPECT_FALSE(refused(two_nodes(), on("gpu:0", 5), held).never);
  EXPECT_EQ(refused(two_nodes(), on("gpu:0", 5), held).blockers.size(), 0U) << "no part of the host is held";
}

TEST(Host, AHeldCoreIsAPartOfItsCpuDevice) {
  const std::vector<Held> held{part("ada (job 1)", {0})};
  Request whole{.devices = {"cpu:0"}, .cpu = true}, half = whole;
  half.share = 0.5;
  EXPECT_THAT(refused(two_nodes(), whole, held).sentence, HasSubstr("cpu:0 is held by ada (job 1), which leaves 75 %"));
  EXPECT_THAT(placed_on(two_nodes(), half, held), ElementsAre("cpu:0"));
}

TEST(Host, OfNumaNodesCountsWhereThereAreNoCpuDevices) {
  Inventory inventory = make_gpus(1);
  inventory.numa = {{.node = 0, .cores = std::vector{0, 1}, .memory_bytes = 4 * kGiB},
                    {.node = 1, .cores = std::vector{2, 3}, .memory_bytes = 4 * kGiB}};
  EXPECT_THAT(host_cores(inventory).value(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(host_memory(inventory).value(), 8 * kGiB);
}

TEST(Host, FitsAgreesWithPlace) {
  const Inventory inventory = two_nodes();
  const Layout layout(inventory);
  const std::vector<Held> held{part("ada", {0, 1, 2, 3, 4}, 60 * kGiB)};
  for (int cores = 0; cores < 10; ++cores)
    for (const int64_t gib : {0, 4, 5, 70}) {
      const Request request = on("gpu:0", cores, gib * kGiB);
      const auto answer = place(layout, request, held);
      EXPECT_EQ(fits(layout, request, held).value(), std::holds_alternative<Placement>(answer.value())) << cores << gib;
    }
}

}  // namespace
}  // namespace remuda::place
