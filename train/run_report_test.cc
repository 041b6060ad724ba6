#include "train/run_report.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

DeviceReport alone(double samples_per_s) {
  DeviceReport device;
  device.alone_measurements = {samples_per_s};
  return device;
}

TEST(RunReport, EfficiencyComparesWithTheDevicesThatWereAtWork) {
  RunReport report;
  report.devices = {alone(60), alone(40)};
  report.timed_samples = 400;
  report.timed_s = 5;
  EXPECT_DOUBLE_EQ(report.efficiency(), 0.8);
  report.before_loss = report.timed();
  EXPECT_DOUBLE_EQ(report.before_loss.ideal_samples, 500);
  report.devices = {alone(40)};
  report.timed_samples += 160;
  report.timed_s += 5;
  EXPECT_DOUBLE_EQ(report.efficiency(), 560.0 / 700);
  EXPECT_DOUBLE_EQ(report.samples_per_s(), 56);
}

}  // namespace
}  // namespace remuda::train
