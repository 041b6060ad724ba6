// On the stand-in accelerator, whose profiler is registered with libtorch as CUDA's would be.
#include "train/device/device_timer.h"

#include <algorithm>
#include <c10/core/DeviceGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "train/operator_watch.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

const torch::Device kTimed(torch::kXPU, 0);

class DeviceTimerTest : public ::testing::Test {
 protected:
  /// Each task of the device takes up to so long, as drawn with one seed: 4 ms in all of them, or next to nothing.
  static void slow_down(bool on) { testing::configure_standin(0, {.random_delay_s = on ? 0.004 : 0, .seed = 7}); }
  ~DeviceTimerTest() override {
    testing::lose_standin(0, false);
    slow_down(false);
  }
};

profile::OperationTotal total_of(profile::Recorder& recorder, const std::string& name) {
  const auto totals = recorder.totals();
  const auto found = std::ranges::find(totals, name, &profile::OperationTotal::name);
  return found == totals.end() ? profile::OperationTotal() : *found;
}

TEST_F(DeviceTimerTest, IsForDevicesThatWorkOnTheirOwn) {
  EXPECT_FALSE(DeviceTimer::of(torch::kCPU));
  EXPECT_TRUE(DeviceTimer::of(kTimed));
}

TEST_F(DeviceTimerTest, MarksItsOwnDeviceWhateverTheThreadsIs) {
  const auto timer = DeviceTimer::of(kTimed);
  std::thread([&] {
    const c10::DeviceGuard another(torch::Device(torch::kXPU, 1));
    timer->mark();
    testing::lose_standin(0);
    EXPECT_ANY_THROW(timer->mark());
  }).join();
}

TEST_F(DeviceTimerTest, MeasuresWhatLiesBetweenTwoMarks) {
  auto tensor = torch::zeros({4}, kTimed);
  slow_down(true);
  const auto timer = DeviceTimer::of(kTimed);
  const auto from = timer->mark();
  for (int i = 0; i < 20; ++i) tensor.add_(1);
  const auto middle = timer->mark();
  for (int i = 0; i < 20; ++i) tensor.add_(1);
  const auto to = timer->mark();
  const double first = timer->seconds(from, middle), second = timer->seconds(middle, to);
  EXPECT_GT(first, 0.001);  // 21 delays of 2 ms in the mean; each sleeps at least as long as it is told
  EXPECT_GT(second, 0.001);
  EXPECT_NEAR(timer->seconds(from, to), first + second, 1e-5);  // float, of microseconds
}

TEST_F(DeviceTimerTest, GivesOperatorsTheTimeOfTheDeviceWithoutThatOfTheThread) {
  profile::Recorder recorder;
  const profile::Join join(&recorder, "steps");
  auto tensor = torch::zeros({4}, kTimed);
  slow_down(true);
  recorder.set_recording(true);
  {
    const OperatorWatch watch(recorder, DeviceTimer::of(kTimed));
    for (int i = 0; i < 20; ++i) tensor.add_(1);
  }
  const auto total = total_of(recorder, "aten::add_");
  EXPECT_GE(total.calls, 20);  // the stand-in computes with operators, too
  EXPECT_GT(total.device_s, 0.001);
  EXPECT_GE(total.device_s, total.device_self_s);
}

TEST_F(DeviceTimerTest, TakesTheTimeOfWhatAnOperatorCallsFromItsOwn) {
  profile::Recorder recorder;
  const profile::Join join(&recorder, "steps");
  const auto tensor = torch::ones({8, 8}, kTimed);
  recorder.set_recording(true);
  {
    const OperatorWatch watch(recorder, DeviceTimer::of(kTimed));
    tensor.to(torch::kCPU);
  }
  const auto to = total_of(recorder, "aten::to"), copy = total_of(recorder, "aten::_to_copy");
  ASSERT_EQ(to.calls, 1);
  ASSERT_EQ(copy.calls, 1);
  EXPECT_GE(to.device_s, copy.device_s);
  EXPECT_NEAR(to.device_self_s, to.device_s - copy.device_s, 1e-5);
}

TEST_F(DeviceTimerTest, ALostDeviceEndsAWatchWithoutTimes) {
  profile::Recorder recorder;
  const profile::Join join(&recorder, "steps");
  auto tensor = torch::zeros({4}, kTimed);
  recorder.set_recording(true);
  {
    const OperatorWatch watch(recorder, DeviceTimer::of(kTimed));
    testing::lose_standin(0);
    EXPECT_ANY_THROW(tensor.add_(1));
  }
}

TEST_F(DeviceTimerTest, ShowsSpansAsRangesOfTheMakersProfiler) {
  profile::Recorder recorder;
  recorder.report_to(profiler_ranges());
  const profile::Join join(&recorder, "steps");
  testing::standin_ranges().clear();
  recorder.set_recording(true);
  {
    const profile::Span step("step");
    const profile::Span update("update");
  }
  recorder.set_recording(false);
  EXPECT_THAT(testing::standin_ranges(), ::testing::ElementsAre("step", "update", "end", "end"));
}

}  // namespace
}  // namespace remuda::train
