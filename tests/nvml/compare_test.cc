#include "tests/nvml/compare.h"

#include <gmock/gmock.h>

namespace remuda::tests::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Inventory pair() {
  Inventory machine;
  machine.host = "test";
  for (const char* id : {"GPU-a", "GPU-b"}) {
    Device gpu;
    gpu.id = id;
    gpu.uuid = gpu.id;
    gpu.kind = DeviceKind::gpu;
    gpu.status.power_watts = 61.5;
    gpu.status.busy = Missing{MissingReason::denied, "in these words"};
    machine.devices.push_back(gpu);
  }
  Link link;
  link.a = "GPU-a";
  link.b = "GPU-b";
  link.fabric_links = 4;
  machine.links = {link};
  return machine;
}

TEST(Compare, FindsNothingWhereAllIsAsRecorded) {
  Inventory shown = pair();
  shown.devices[0].status.busy = Missing{MissingReason::denied, "in other words"};
  shown.devices[0].status.temperature_c = 40.0;
  std::swap(shown.links[0].a, shown.links[0].b);
  EXPECT_THAT(disagreements(pair(), shown), IsEmpty());
}

TEST(Compare, FindsEveryDifference) {
  Inventory shown = pair();
  shown.devices[0].status.power_watts = 61.4;
  shown.devices[1].status.busy = Missing{MissingReason::lost, "in these words"};
  shown.links[0].fabric_links = 3;
  EXPECT_THAT(disagreements(pair(), shown),
              ElementsAre(HasSubstr("power_watts: recorded 61.5, shown 61.4"), HasSubstr("busy: recorded"),
                          HasSubstr("GPU-a - GPU-b.fabric_links: recorded 4, shown 3")));
}

TEST(Compare, FindsWhatIsNotShown) {
  Inventory shown = pair();
  shown.devices.pop_back();
  shown.devices[0].status.power_watts = {};
  shown.links.clear();
  EXPECT_THAT(disagreements(pair(), shown),
              ElementsAre("number of GPUs: recorded 2, shown 1", HasSubstr("power_watts: recorded 61.5, shown null")));
}

}  // namespace
}  // namespace remuda::tests::nvml
