// Measures CPU devices, with sizes too small for useful figures: each figure exists, is finite and not zero.
#include <cmath>
#include <future>
#include <gmock/gmock.h>
#include <mutex>
#include <unistd.h>

#include "base/file.h"
#include "comm/testing/run_ranks.h"
#include "device/fields.h"
#include "measure/shared_memory.h"
#include "train/measure/gemm.h"
#include "train/measure/rank.h"
#include "train/measure/target.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr size_t kTiny = 64 << 10;

Device cpu(int index) {
  Device device{.id = "cpu:" + std::to_string(index), .index = index};
  device.cores = Reading(std::vector{0});
  return device;
}

measure::Plan plan_of(const std::vector<Device>& devices) {
  std::vector<const Device*> pointers;
  for (const Device& device : devices) pointers.push_back(&device);
  return measure::make_plan(pointers, 0.001, kTiny);
}

void expect_positive(double value, const char* what) {
  EXPECT_GT(value, 0) << what;
  EXPECT_TRUE(std::isfinite(value)) << what;
}

TEST(Gemm, RunsInEachPrecisionThatTheDeviceHas) {
  const auto rates = gemm_rates(at::kCPU, {.seconds = 0.001, .shortest_s = 0, .wait = [] {}});
  std::vector<std::string> names;
  for (const auto& rate : rates) {
    names.push_back(rate.precision);
    expect_positive(rate.tflops, rate.precision.c_str());
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"float64", "float32"}));
}

TEST(Gemm, StopsAtTheLargestMatrixHoweverFast) {
  const auto rates = gemm_rates(at::kCPU, {.seconds = 0, .shortest_s = 1e9, .largest = 128, .wait = [] {}});
  EXPECT_FALSE(rates.empty());
}

TEST(CpuTarget, TellsEveryFigureOfItsDevice) {
  measure::Plan plan = plan_of({cpu(0)});
  const auto shared = measure::SharedMemory::create(shared_bytes(plan));
  ASSERT_TRUE(shared);
  plan.memory_fd = ::dup(shared->fd());
  const auto target = make_cpu_target(plan, 0);
  ASSERT_TRUE(target) << target.error().message;
  const auto figures = (*target)->device(0);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->measured.id, "cpu:0");
  expect_positive(figures->measured.host_to_device_gbps.value_or(0), "to the device");
  expect_positive(figures->measured.device_to_host_gbps.value_or(0), "to the host");
  expect_positive(figures->measured.latency_us.value_or(0), "latency");
  expect_positive(figures->memory_copy_gbps.value_or(0), "memory");
  EXPECT_FALSE(figures->measured.gemm.empty());
}

TEST(CpuTarget, WithoutItsMemoryIsRefused) {
  measure::Plan plan = plan_of({cpu(0)});
  const auto target = make_cpu_target(plan, 0);
  ASSERT_FALSE(target);
}

TEST(AcceleratorTarget, SaysWhyItCannotMeasure) {
  Device unknown{.id = "x", .kind = DeviceKind::gpu, .vendor = "Nobody"};
  const auto nameless = make_accelerator_target(plan_of({unknown}), 0)->device(0);
  ASSERT_FALSE(nameless);
  EXPECT_THAT(nameless.error().message, HasSubstr("no UUID"));
  unknown.uuid = Reading<std::string>("GPU-12345678");
  const auto foreign = make_accelerator_target(plan_of({unknown}), 0)->device(0);
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, HasSubstr("no devices of Nobody"));
}

/// All events of all ranks, from a measurement of two CPU devices by threads of this process.
std::vector<Json> events_of_a_run() {
  measure::Plan plan = plan_of({cpu(0), cpu(1)});
  const auto shared = measure::SharedMemory::create(shared_bytes(plan));
  const auto file = scratch_file();
  EXPECT_TRUE(shared && file);
  auto written = std::make_unique<Events>(file->get());
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    measure::Plan own = plan;
    own.memory_fd = ::dup(shared->fd());
    const auto outcome = measure_rank(own, communicator, *written);
    EXPECT_TRUE(outcome) << outcome.error().message;
  });
  written.reset();
  ::lseek(file->get(), 0, SEEK_SET);
  std::vector<Json> events;
  const auto text = read_text("/proc/self/fd/" + std::to_string(file->get()));
  for (const auto& line : split(text.value_or(""), '\n'))
    if (!line.empty()) events.push_back(parse_json(line, "an event").value_or(Json()));
  return events;
}

TEST(MeasureRank, SendsEachPhaseAndItsFiguresOnce) {
  const auto events = events_of_a_run();
  ASSERT_THAT(events, SizeIs(2 * 5));
  for (size_t i = 0; i < events.size(); i += 2) {
    EXPECT_EQ(events[i]["event"], "phase");
    EXPECT_EQ(events[i]["phase"], i / 2);
    EXPECT_EQ(events[i]["of"], 5);
    EXPECT_EQ(events[i + 1]["event"], "measured") << events[i + 1];
    EXPECT_EQ(events[i + 1]["phase"], i / 2);
  }
  EXPECT_GT(events[1]["device"]["host_to_device_gbps"], 0);
  EXPECT_GT(events[5]["gbps"], 0);
  EXPECT_GT(events[7]["gbps"], 0);
  EXPECT_GT(events[9]["latency_us"], 0);
}

}  // namespace
}  // namespace remuda::train
