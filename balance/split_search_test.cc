// What holds of the law whatever the devices.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <rapidcheck/gtest.h>

#include "balance/split.h"
#include "balance/testing/all_splits.h"

namespace remuda::balance {
namespace {

using namespace testing;

rc::Gen<double> between(int low, int high, double unit) {
  return rc::gen::map(rc::gen::inRange(low, high + 1), [unit](int value) { return value * unit; });
}

SplitDevice any_device() {
  SplitDevice device{.compute = {*between(0, 20, kMilli), *between(1, 60, 0.1 * kMilli)},
                     .update_s = *between(1, 200, kMilli)};
  device.exchange_s = *between(0, 40, kMilli);
  device.receive_s = device.exchange_s * *between(0, 10, 0.1);
  if (*rc::gen::inRange(0, 3) > 0) return device;
  device.memory_bytes = *between(100, 400, kMebi);
  device.room_bytes = 0.9 * device.memory_bytes;
  device.held_bytes = 60 * kMebi;
  device.fixed_bytes = 5 * kMebi;
  device.sample_bytes = *between(1, 8, kMebi);
  return device;
}

std::vector<SplitDevice> any_devices(int most) {
  std::vector<SplitDevice> devices;
  for (int i = *rc::gen::inRange(1, most + 1); i > 0; --i) devices.push_back(any_device());
  return devices;
}

SplitTask any_task() {
  const int unit = *rc::gen::inRange(1, 4);
  return {.batch = unit * *rc::gen::inRange(1, 100), .unit = unit, .state = {50 * kMebi, *between(0, 200, kMebi)}};
}

RC_GTEST_PROP(SplitProperty, HoldsTheBatchAndAllBounds, ()) {
  std::vector<SplitDevice> devices = any_devices(6);
  for (SplitDevice& device : devices) {
    device.role = *rc::gen::element(Role::compute, Role::compute, Role::compute, Role::state, Role::preprocess);
    if (*rc::gen::inRange(0, 4) == 0) device.samples.high = *rc::gen::inRange(0, 100);
    if (*rc::gen::inRange(0, 4) == 0) device.most_state = *between(0, 10, 0.1);
  }
  const SplitTask task = any_task();
  const auto split = best_split(devices, task);
  if (!split) return;
  RC_ASSERT(std::accumulate(split->shares.begin(), split->shares.end(), 0) == task.batch);
  RC_ASSERT(std::abs(std::accumulate(split->state.begin(), split->state.end(), 0.0) - 1) < 1e-9);
  for (const int share : split->shares) RC_ASSERT(share >= 0 && share % task.unit == 0);
  const double judged_s = testing::step_s(devices, task, split->shares, split->state);
  RC_ASSERT(std::abs(judged_s - split->step_s) < 1e-9);
}

RC_GTEST_PROP(SplitProperty, IsNeverSlowerThanAnySubset, ()) {
  const std::vector<SplitDevice> devices = any_devices(6);
  const SplitTask task = any_task();
  const auto split = best_split(devices, task);
  for (unsigned subset = 1; subset < 1U << devices.size(); ++subset) {
    std::vector<SplitDevice> some = devices;
    for (size_t i = 0; i < devices.size(); ++i)
      if (!(subset >> i & 1)) some = without(some, i);
    const auto of_some = best_split(some, task);
    if (of_some) RC_ASSERT(split && split->step_s <= of_some->step_s * 1.01);
  }
}

RC_GTEST_PROP(SplitProperty, IsNoSlowerWhereADeviceIsFaster, ()) {
  std::vector<SplitDevice> devices = any_devices(4);
  const SplitTask task = any_task();
  const auto before = best_split(devices, task);
  SplitDevice& one = devices[size_t(*rc::gen::inRange(0, int(devices.size())))];
  const double factor = *between(1, 9, 0.1);
  one.compute = {one.compute.fixed_s * factor, one.compute.per_sample_s * factor};
  one.update_s *= factor;
  const auto after = best_split(devices, task);
  RC_ASSERT(before.has_value() == after.has_value());
  if (before) RC_ASSERT(after->step_s <= before->step_s * 1.01);
}

/// The law may be better than the grid, which has no parts between its lines; and grids are coarse where many are.
RC_GTEST_PROP(SplitProperty, IsNearTheBestOfAll, ()) {
  const std::vector<SplitDevice> devices = any_devices(3);
  SplitTask task = any_task();
  task.batch = task.unit * *rc::gen::inRange(1, 13);
  const auto split = best_split(devices, task);
  const double least_s = testing::least_step_s(devices, task, 12);
  if (std::isfinite(least_s)) RC_ASSERT(split && least_s / split->step_s >= 0.99);
}

}  // namespace
}  // namespace remuda::balance
