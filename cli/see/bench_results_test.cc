#include "cli/see/bench_results.h"

#include <gmock/gmock.h>

#include "device/fields.h"

namespace remuda::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr double kTime_s = 1e9;

/// Two devices: phases 0 and 1 are theirs, 2 and 3 the pulls, 4 the latency.
BenchResults results_of(DeviceKind kind) {
  std::vector<Device> devices{{.id = "a", .kind = kind, .index = 0}, {.id = "b", .kind = kind, .index = 1}};
  return {measure::make_plan({&devices[0], &devices[1]}, 1, 1 << 20), kTime_s};
}

Json device_event(size_t phase, const std::string& id, double gbps = 10) {
  MeasuredDevice device{.id = id, .host_to_device_gbps = gbps, .gemm = {{"float32", 2}}};
  return {{"event", "measured"}, {"phase", phase}, {"device", fields::write(device)}, {"memory_copy_gbps", 12.0}};
}

Json figure_event(size_t phase, const char* figure, double value) {
  return {{"event", "measured"}, {"phase", phase}, {figure, value}};
}

Json unmeasured_event(size_t phase, const std::string& why) {
  return {{"event", "unmeasured"}, {"phase", phase}, {"why", why}};
}

TEST(BenchResults, PutsAPairTogetherFromItsPhases) {
  BenchResults results = results_of(DeviceKind::cpu);
  results.take(figure_event(2, "gbps", 5));
  EXPECT_THAT(results.links(), IsEmpty());
  results.take(figure_event(3, "gbps", 4));
  results.take(figure_event(4, "latency_us", 0.1));
  ASSERT_THAT(results.links(), SizeIs(1));
  EXPECT_EQ(results.links()[0],
            (MeasuredLink{.a = "a", .b = "b", .time_s = kTime_s, .gbps = 4, .latency_us = Reading(0.1)}));
}

TEST(BenchResults, KeepsWhatWasMeasuredOfADevice) {
  BenchResults results = results_of(DeviceKind::cpu);
  results.take(device_event(1, "b"));
  ASSERT_THAT(results.devices(), SizeIs(1));
  EXPECT_EQ(results.devices()[0].id, "b");
  EXPECT_EQ(results.devices()[0].time_s, kTime_s);
  EXPECT_EQ(results.memory_copy_gbps("b"), 12);
  EXPECT_FALSE(results.memory_copy_gbps("a"));
}

TEST(BenchResults, TellsWhereItIs) {
  BenchResults results = results_of(DeviceKind::cpu);
  results.take({{"event", "phase"}, {"phase", 2}, {"of", 5}});
  EXPECT_EQ(results.status(), "measuring cpu:0 from cpu:1");
  EXPECT_NEAR(results.done(), 0.4, 1e-9);
}

TEST(BenchResults, SaysOnceWhyGpusCouldNotBeMeasured) {
  BenchResults results = results_of(DeviceKind::gpu);
  for (size_t phase = 0; phase < 5; ++phase) results.take(unmeasured_event(phase, "no driver"));
  EXPECT_THAT(results.unmeasured(), ElementsAre(Pair("no driver", "gpu:0, gpu:1")));
  EXPECT_THAT(results.devices(), IsEmpty());
  EXPECT_THAT(results.links(), IsEmpty());
}

TEST(BenchResults, NamesThePairThatCouldNotBeMeasured) {
  BenchResults results = results_of(DeviceKind::gpu);
  results.take(unmeasured_event(3, "no way\x1b between"));
  EXPECT_THAT(results.unmeasured(), ElementsAre(Pair("no way? between", "gpu:1 from gpu:0")));
}

TEST(BenchResults, WhatMakesNoSenseIsNoFigure) {
  const Json odd[] = {
      {{"event", "measured"}, {"phase", 0}},
      {{"event", "measured"}, {"phase", 0}, {"device", 7}},
      {{"event", "measured"}, {"phase", 0}, {"device", {{"id", "a"}, {"gemm", "fast"}}}},
      device_event(0, "b"),
      device_event(0, "a", -1),
      figure_event(2, "gbps", 0),
      {{"event", "measured"}, {"phase", 2}, {"gbps", "many"}},
      figure_event(4, "latency_us", -1),
  };
  for (const Json& event : odd) {
    BenchResults results = results_of(DeviceKind::cpu);
    results.take(event);
    EXPECT_THAT(results.unmeasured(), SizeIs(1)) << event;
    EXPECT_THAT(results.devices(), IsEmpty()) << event;
  }
}

TEST(BenchResults, PhasesThatAreNotThereAreIgnored) {
  BenchResults results = results_of(DeviceKind::cpu);
  for (const Json& phase : {Json(-1), Json(5), Json(1e300), Json("first"), Json()}) {
    results.take({{"event", "measured"}, {"phase", phase}, {"gbps", 1}});
    results.take({{"event", "phase"}, {"phase", phase}});
  }
  EXPECT_THAT(results.unmeasured(), IsEmpty());
  EXPECT_EQ(results.done(), 0);
}

}  // namespace
}  // namespace remuda::cli
