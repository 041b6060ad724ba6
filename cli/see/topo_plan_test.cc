#include "cli/see/topo_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace remuda::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Inventory four_gpus() {
  Inventory inventory{.host = "host1"};
  for (int i = 0; i < 4; ++i)
    inventory.devices.push_back({.id = "GPU-" + std::to_string(i), .kind = DeviceKind::gpu, .index = i});
  for (int a = 0; a < 4; ++a)
    for (int b = a + 1; b < 4; ++b)
      inventory.links.push_back({.a = "GPU-" + std::to_string(a),
                                 .b = "GPU-" + std::to_string(b),
                                 .path = a / 2 == b / 2 ? Path::pix : Path::sys});
  return inventory;
}

std::string error_of(const PlanFlags& flags) {
  const auto output = plan_output(four_gpus(), flags, false);
  return output ? "no error" : output.error().message;
}

TEST(TopoPlan, TakesAllGpusUnlessSomeAreNamed) {
  EXPECT_THAT(plan_output(four_gpus(), {.collective = "allreduce"}, false).value(),
              StartsWith("all-reduce of 4.0 MiB over gpu:0-3\n"));
  const PlanFlags two{.collective = "allreduce", .devices = {"3", "GPU-1"}, .bytes = "100MiB"};
  EXPECT_THAT(plan_output(four_gpus(), two, false).value(), StartsWith("all-reduce of 100.0 MiB over gpu:3 gpu:1\n"));
}

TEST(TopoPlan, SaysItAsJson) {
  const auto json = parse_json(plan_output(four_gpus(), {.collective = "allreduce", .bytes = "8"}, true).value(), "it");
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["bytes"], 8);
  EXPECT_EQ((*json)["devices"].size(), 4U);
}

TEST(TopoPlan, RefusesInOneSentence) {
  EXPECT_EQ(error_of({.devices = {"gpu:0", "0"}}), "--devices names gpu:0 twice");
  EXPECT_THAT(error_of({.devices = {"gpu:0", "gpu:7"}}), HasSubstr("gpu:7"));
  EXPECT_EQ(error_of({.devices = {"gpu:0"}}), "an all-reduce needs two devices or more");
  for (const char* bytes : {"", "lots", "0", "-4MiB", "0.1", "9999999PiB"})
    EXPECT_EQ(error_of({.bytes = bytes}), std::string("--bytes: '") + bytes + "' is no size of a buffer; write 100MiB");
  Inventory many{.host = "host1"};
  for (int i = 0; i < 65; ++i) many.devices.push_back({.id = std::to_string(i), .kind = DeviceKind::gpu, .index = i});
  EXPECT_EQ(plan_output(many, {}, false).error().message, "--plan has room for 64 devices, these are 65");
  for (int i = 65; i < 513; ++i) many.devices.push_back({.id = std::to_string(i), .kind = DeviceKind::gpu, .index = i});
  EXPECT_EQ(plan_output(many, {.devices = {"gpu:0", "gpu:1"}}, false).error().message,
            "--plan has room for machines of 512 devices, this one has 513");
}

}  // namespace
}  // namespace remuda::cli
