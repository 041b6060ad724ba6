#include "train/run_report.h"

#include <cmath>
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

// A run that is stopped while its devices are measured one after another.
TEST(RunReport, WhatWasNotMeasuredIsAbsent) {
  RunReport report;
  report.devices = {alone(60), DeviceReport()};
  Json json = to_json(report);
  EXPECT_EQ(json["devices"][0]["alone_samples_per_s"], 60);
  EXPECT_FALSE(json["devices"][1].contains("alone_samples_per_s"));
  EXPECT_EQ(json["devices"][1]["memory"]["missing"], "the run was stopped before this device was measured");
  EXPECT_FALSE(json.contains("ideal_samples_per_s"));
  EXPECT_FALSE(json.contains("balance_efficiency"));
  report.devices[0].memory_need = {.known = 1, .held = 100};
  json = to_json(report)["devices"][0]["memory"];
  EXPECT_EQ(json["held_bytes"], 100);
  EXPECT_EQ(json["peak_missing"], "the run was stopped before it had made a step");
  EXPECT_FALSE(json.contains("peak_bytes") || json.contains("predicted_peak_bytes"));
  report.devices[1] = alone(0);
  json = to_json(report);
  EXPECT_EQ(json["devices"][1]["alone_samples_per_s"], 0) << "not one sample fits in it";
  EXPECT_EQ(json["ideal_samples_per_s"], 60);
}

TEST(RunReport, SaysWhereWhatWasMadeIsOfNoUse) {
  RunReport report;
  EXPECT_EQ(report.not_finite(), "") << "no step was made";
  report.steps = 8;
  report.skipped_steps = 7;
  report.loss_per_epoch = {NAN, 0.5};
  report.test = Evaluation{0.4, 0.9};
  EXPECT_EQ(report.not_finite(), "");
  EXPECT_FALSE(to_json(report).contains("not_finite"));
  report.has_finite_weights = false;
  EXPECT_EQ(report.not_finite(), "weights are not finite at the end");
  report.has_finite_weights = true;
  report.loss_per_epoch = {0.5, NAN};
  EXPECT_EQ(report.not_finite(), "loss or gradients were not finite in all steps of the last epoch");
  for (const double loss : {NAN, -NAN}) {
    report.test->loss = loss;
    EXPECT_EQ(report.not_finite(), "the test loss is nan at the end");
  }
  EXPECT_EQ(Json::parse(to_line(to_json(report)))["test_loss"], nullptr);
  report.skipped_steps = 8;
  EXPECT_EQ(to_json(report)["not_finite"], "loss or gradients were not finite in all 8 steps: nothing was learned");
}

}  // namespace
}  // namespace remuda::train
