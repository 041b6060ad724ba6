#include "cli/see/topo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::cli {
namespace {

using testing::HasSubstr;

Inventory three_gpus() {
  Inventory inventory{.host = "host1"};
  for (int i = 0; i < 3; ++i)
    inventory.devices.push_back({.id = "GPU-" + std::to_string(i), .kind = DeviceKind::gpu, .index = i});
  inventory.links = {{.a = "GPU-0", .b = "GPU-1", .path = Path::pix},
                     {.a = "GPU-0", .b = "GPU-2", .path = Path::sys},
                     {.a = "GPU-1", .b = "GPU-2", .path = Path::phb}};
  return inventory;
}

TEST(TopoSet, TellsRingAndTree) {
  EXPECT_EQ(set_text(three_gpus(), {"gpu:0", "gpu:1", "gpu:2"}).value(),
            "ring bottleneck of gpu:0 gpu:1 gpu:2: 10.0 GB/s at gpu:0-gpu:2 (assumed)\n"
            "ring order: gpu:0 gpu:1 gpu:2\n"
            "tree bottleneck of gpu:0 gpu:1 gpu:2: 18.0 GB/s at gpu:1-gpu:2 (assumed)\n");
}

TEST(TopoSet, KeepsTheOrderOfTheNames) {
  EXPECT_THAT(set_text(three_gpus(), {"2", "GPU-1"}).value(), HasSubstr("gpu:2 gpu:1: 18.0 GB/s at gpu:2-gpu:1"));
}

TEST(TopoSet, RefusesStrangersAndTwins) {
  EXPECT_THAT(set_text(three_gpus(), {"gpu:0", "gpu:7"}).error().message, HasSubstr("gpu:7"));
  EXPECT_EQ(set_text(three_gpus(), {"gpu:0", "0"}).error().message, "--set names gpu:0 twice");
}

}  // namespace
}  // namespace remuda::cli
