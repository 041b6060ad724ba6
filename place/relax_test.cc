// What a request would have to give up.
#include "place/relax.h"

#include <gmock/gmock.h>

#include "place/host.h"
#include "place/testing/machine.h"

namespace remuda::place {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// What would make it possible, as texts; each of them fits, and the next larger one of its kind does not.
std::vector<std::string> changes(const Inventory& inventory, const Request& request, const std::vector<Held>& held) {
  const Layout layout(inventory);
  const auto could_be = [&](const Request& less) { return fits(layout, less, held).value_or(false); };
  std::vector<std::string> texts;
  for (const Relaxation& one : relaxations(request, could_be)) {
    EXPECT_TRUE(could_be(one.request)) << one.change;
    texts.push_back(one.change);
  }
  return texts;
}

TEST(Relax, NamesTheMostDevicesThatThereAre) {
  EXPECT_THAT(changes(make_gpus(8), {.count = 6}, busy({0, 1, 2})), ElementsAre("with -n 5"));
  EXPECT_THAT(changes(make_gpus(8), {.count = 2}, busy({0, 1, 2, 3, 4, 5, 6, 7})), IsEmpty());
  EXPECT_THAT(changes(make_gpus(3), {.count = 2, .devices = {"gpu:0", "gpu:1"}}, busy({0})),
              ElementsAre("without --device"))
      << "each of them is named, so that fewer are not what was asked for";
}

TEST(Relax, NamesTheMostMemoryThatIsFree) {
  Inventory inventory = make_gpus(2);
  inventory.devices[1].memory_bytes = 24 * kGiB + (kGiB / 2);
  EXPECT_THAT(changes(inventory, {.memory_bytes = 40 * kGiB}, busy({0})), ElementsAre("with --mem 24GiB"));
  inventory.devices[1].memory_bytes = Missing{.reason = MissingReason::unsupported, .detail = "none"};
  EXPECT_THAT(changes(inventory, {.memory_bytes = 40 * kGiB}, busy({0})), ElementsAre("without --mem"));
}

TEST(Relax, NamesTheTightestLinkThatThereIs) {
  Inventory inventory = make_gpus(4);
  join_by(inventory, 0, 1, Path::phb, 4);
  join_by(inventory, 2, 3, Path::phb);
  EXPECT_THAT(changes(inventory, {.count = 2, .link = LinkNeed::nvlink}, busy({0})),
              ElementsAre("with -n 1", "with --link any"));
}

TEST(Relax, NamesEachConditionThatStandsInTheWayAlone) {
  Inventory inventory = make_gpus(3);
  inventory.devices[2].model = "Acme V100";
  EXPECT_THAT(changes(inventory, {.count = 2}, busy({0})), ElementsAre("with -n 1", "with --any-model"));
  EXPECT_THAT(changes(inventory, {.model = "*A100*"}, busy({0, 1})), ElementsAre("without --model"));
  EXPECT_THAT(changes(inventory, {.devices = {"gpu:0"}}, busy({0})), ElementsAre("without --device"));
  Request both{.model = "*A100*", .devices = {"gpu:0"}};
  EXPECT_THAT(changes(inventory, both, busy({0, 1})), IsEmpty()) << "one of them alone does not help";
}

TEST(Relax, NamesPartsOfADevice) {
  std::vector<Held> held = busy({0});
  held[0].share = 0.62;
  EXPECT_THAT(changes(make_gpus(1), {.share = 0.5}, held), ElementsAre("with --share 35%"));
  EXPECT_THAT(changes(make_gpus(1), {.share = 1}, held), IsEmpty()) << "who wants all of it does not want a part";
}

TEST(Relax, NamesCoresAndMemoryOfTheHost) {
  Inventory inventory = make_gpus(1);
  Device cpu{.id = "cpu:0", .kind = DeviceKind::cpu, .index = 0};
  cpu.cores = std::vector<int>{0, 1, 2, 3};
  cpu.memory_bytes = 32 * kGiB;
  inventory.devices.push_back(cpu);
  EXPECT_THAT(changes(inventory, {.cores = 4}, {host_part({0}, {}, "ada")}), ElementsAre("with --cpus 3"));
  EXPECT_THAT(changes(inventory, {.cores = 4}, {host_part({0, 1, 2, 3}, {}, "ada")}), ElementsAre("without --cpus"));
  const std::vector<Held> half = {host_part({}, {.host_memory_bytes = 20 * kGiB}, "ada")};
  EXPECT_THAT(changes(inventory, {.host_memory_bytes = 16 * kGiB}, half), ElementsAre("with --host-mem 12GiB"));
}

TEST(Relax, AsksSeldom) {
  int asked = 0;
  const Request all{.count = 256,
                    .memory_bytes = 1024 * kGiB,
                    .model = "*",
                    .link = LinkNeed::nvlink,
                    .share = 1,
                    .cores = 65536,
                    .host_memory_bytes = 4096 * kGiB};
  relaxations(all, [&](const Request&) { return ++asked, true; });
  EXPECT_LT(asked, 70);
}

}  // namespace
}  // namespace remuda::place
