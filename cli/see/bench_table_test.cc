#include "cli/see/bench_table.h"

#include <gmock/gmock.h>

#include "cli/see/bench_links.h"
#include "device/fields.h"

namespace remuda::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Device device(DeviceKind kind, int index) {
  Device made{.kind = kind, .index = index};
  made.id = kind == DeviceKind::cpu ? "cpu:" + std::to_string(index) : "GPU-abcd-" + std::to_string(index);
  if (kind == DeviceKind::cpu) return made;
  made.pcie_generation_max = Reading(4);
  made.pcie_width_max = Reading(16);
  return made;
}

/// Two devices of a kind, measured.
struct Measured {
  explicit Measured(DeviceKind kind)
      : inventory{.host = "here", .devices = {device(kind, 0), device(kind, 1)}},
        results(measure::make_plan({&inventory.devices[0], &inventory.devices[1]}, 1, 1 << 20), 1e9) {
    for (size_t i = 0; i < 2; ++i) {
      const MeasuredDevice figures{.id = inventory.devices[i].id,
                                   .host_to_device_gbps = 10.5,
                                   .latency_us = 0.125,
                                   .gemm = {{"float64", 0.05}, {"float32", 123.4}}};
      results.take({{"event", "measured"},
                    {"phase", i},
                    {"device", fields::write(figures)},
                    {"memory_copy_gbps", 12.0 + static_cast<double>(i)}});
    }
    for (const int phase : {2, 3}) results.take({{"event", "measured"}, {"phase", phase}, {"gbps", 7.25}});
    results.take({{"event", "measured"}, {"phase", 4}, {"latency_us", 0.06}});
    inventory.measured_devices = results.devices();
    inventory.measured_links = results.links();
  }
  Inventory inventory;
  BenchResults results;
};

TEST(BenchTable, HasARowForEachDeviceAndPairWithUnitsAndLimits) {
  const Measured cpus(DeviceKind::cpu);
  EXPECT_EQ(
      bench_text(cpus.inventory, cpus.results),
      "DEVICE  HOST TO DEVICE  DEVICE TO HOST  LIMIT                  LATENCY   FLOAT64       FLOAT32      BFLOAT16"
      "  FLOAT16\n"
      "cpu:0   10.5 GB/s       -               12.0 GB/s memory copy  0.125 us  50.0 GFLOP/s  123 TFLOP/s  -"
      "         -\n"
      "cpu:1   10.5 GB/s       -               13.0 GB/s memory copy  0.125 us  50.0 GFLOP/s  123 TFLOP/s  -"
      "         -\n"
      "\n"
      "DEVICE  DEVICE  SLOWER DIRECTION  LIMIT                  LATENCY\n"
      "cpu:0   cpu:1   7.25 GB/s         12.0 GB/s memory copy  0.0600 us\n"
      "\n");
}

TEST(BenchTable, OfGpusTheBusIsTheLimit) {
  const Measured gpus(DeviceKind::gpu);
  const std::string text = bench_text(gpus.inventory, gpus.results);
  EXPECT_THAT(text, HasSubstr("gpu:0   10.5 GB/s       -               31.5 GB/s PCIe 4 x16"));
  EXPECT_THAT(text, HasSubstr("gpu:0   gpu:1   7.25 GB/s         31.5 GB/s PCIe 4 x16"));
}

TEST(BenchTable, OfGpusWithDirectLinksThoseAreTheLimit) {
  Measured gpus(DeviceKind::gpu);
  Link link{.a = "GPU-abcd-0", .b = "GPU-abcd-1"};
  link.fabric = Reading(Fabric::nvlink);
  link.fabric_links = Reading(12);
  link.fabric_version = Reading(3);
  gpus.inventory.links = {link};
  EXPECT_THAT(bench_text(gpus.inventory, gpus.results), HasSubstr("300 GB/s nvlink"));
}

TEST(BenchTable, OfNothingIsEmpty) {
  const Measured cpus(DeviceKind::cpu);
  EXPECT_EQ(bench_text({}, cpus.results), "");
}

TEST(BenchJson, HasTheMeasuredPartsAndLimits) {
  const Measured cpus(DeviceKind::cpu);
  const Json json = bench_json(cpus.inventory, cpus.results, "/file");
  EXPECT_EQ(json["host"], "here");
  EXPECT_EQ(json["file"], "/file");
  EXPECT_EQ(json["measured_devices"][1]["host_to_device_gbps"], 10.5);
  EXPECT_EQ(json["measured_links"][0]["gbps"], 7.25);
  EXPECT_EQ(json["limits"].size(), 3u);
  EXPECT_EQ(json["limits"][2], (Json{{"a", "cpu:0"}, {"b", "cpu:1"}, {"gbps", 12.0}, {"what", "memory copy"}}));
  EXPECT_TRUE(json["unmeasured"].empty());
}

TEST(DevicesToMeasure, AreAllButThoseCutIntoParts) {
  Inventory inventory{.devices = {device(DeviceKind::gpu, 0), device(DeviceKind::gpu, 1), device(DeviceKind::cpu, 0)}};
  inventory.devices[1].partitioned = Reading(true);
  const auto chosen = devices_to_measure(inventory, {});
  ASSERT_TRUE(chosen);
  EXPECT_THAT(*chosen, ElementsAre(&inventory.devices[0], &inventory.devices[2]));
}

TEST(DevicesToMeasure, AreThoseNamedInTheOrderOfTheInventory) {
  const Inventory inventory{.devices = {device(DeviceKind::gpu, 0), device(DeviceKind::cpu, 0)}};
  const auto chosen = devices_to_measure(inventory, {"cpu:0", "gpu:0"});
  ASSERT_TRUE(chosen);
  EXPECT_THAT(*chosen, ElementsAre(&inventory.devices[0], &inventory.devices[1]));
}

TEST(DevicesToMeasure, OnesNotThereOrThereTwiceAreUsageErrors) {
  const Inventory inventory{.devices = {device(DeviceKind::gpu, 0), device(DeviceKind::cpu, 0)}};
  for (const auto& [names, sentence] :
       {std::pair<std::vector<std::string>, const char*>{{"gpu:7"}, "gpu:7"}, {{"gpu:0", "0"}, "named twice"}}) {
    const auto chosen = devices_to_measure(inventory, names);
    ASSERT_FALSE(chosen) << sentence;
    EXPECT_EQ(chosen.error().kind, ErrorKind::usage);
    EXPECT_THAT(chosen.error().message, HasSubstr(sentence));
  }
  EXPECT_FALSE(devices_to_measure({}, {}));
}

}  // namespace
}  // namespace remuda::cli
