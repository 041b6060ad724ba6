#include "balance/device_model.h"

#include <gtest/gtest.h>

namespace remuda::balance {
namespace {

/// A little noise that needs no generator.
double wobble(int i) { return 1 + 0.02 * ((i * 7) % 5 - 2); }

std::optional<double> feed(DeviceModel& model, int batch, double seconds, int times) {
  std::optional<double> shift;
  for (int i = 0; i < times; ++i)
    if (const auto found = model.add(batch, seconds * wobble(i))) shift = found;
  return shift;
}

TEST(DeviceModel, IsUnmeasuredAtFirst) {
  DeviceModel model;
  EXPECT_FALSE(model.measured());
  EXPECT_EQ(model.count(8), 0);
  EXPECT_FALSE(model.doubtful());
  EXPECT_GT(model.noise(), 0);
}

TEST(DeviceModel, FitsMediansOfBatchSizes) {
  DeviceModel model;
  feed(model, 10, 3.0, 5);
  feed(model, 30, 7.0, 5);
  EXPECT_NEAR(model.line().fixed_s, 1.0, 0.02);
  EXPECT_NEAR(model.line().per_sample_s, 0.2, 0.002);
  EXPECT_EQ(model.count(10), 5);
}

TEST(DeviceModel, LearnsTheNoise) {
  DeviceModel calm, wild;
  for (int i = 0; i < 30; ++i) {
    calm.add(8, 1.0);
    wild.add(8, i % 3 == 0 ? 0.85 : i % 3 == 1 ? 1.0 : 1.15);
  }
  EXPECT_LT(calm.noise(), 0.03);
  EXPECT_GT(wild.noise(), 0.10);
}

TEST(DeviceModel, IgnoresASpike) {
  DeviceModel model;
  feed(model, 10, 1.0, 10);
  EXPECT_FALSE(model.add(10, 3.0));
  EXPECT_FALSE(feed(model, 10, 1.0, 10));
  EXPECT_FALSE(model.add(10, 3.0));
  EXPECT_FALSE(model.add(10, 3.0));
  EXPECT_TRUE(model.doubtful());
  EXPECT_FALSE(feed(model, 10, 1.0, 10));
  EXPECT_FALSE(model.doubtful());
  EXPECT_NEAR(model.line().seconds(10), 1.0, 0.01);
}

TEST(DeviceModel, SeesThatItBecameSlowerWithinThreeSteps) {
  DeviceModel model;
  feed(model, 10, 1.0, 20);
  EXPECT_FALSE(model.add(10, 1.8));
  EXPECT_FALSE(model.add(10, 1.82));
  const auto shift = model.add(10, 1.78);
  ASSERT_TRUE(shift);
  EXPECT_NEAR(*shift, 1.8, 0.05);
  EXPECT_NEAR(model.line().seconds(10), 1.8, 0.05);
  EXPECT_EQ(model.count(10), 3);
}

TEST(DeviceModel, SeesThatItBecameFaster) {
  DeviceModel model;
  feed(model, 10, 1.0, 20);
  const auto shift = feed(model, 10, 0.6, 5);
  ASSERT_TRUE(shift);
  EXPECT_NEAR(*shift, 0.6, 0.03);
}

TEST(DeviceModel, SeesASmallChangeLater) {
  DeviceModel model;
  feed(model, 10, 1.0, 30);
  EXPECT_FALSE(feed(model, 10, 1.07, 5));
  const auto shift = feed(model, 10, 1.07, 15);
  ASSERT_TRUE(shift);
  EXPECT_NEAR(*shift, 1.07, 0.02);
}

TEST(DeviceModel, KeepsTheShapeOfTheLineWhenItBecomesSlower) {
  DeviceModel model;
  feed(model, 10, 3.0, 10);
  feed(model, 30, 7.0, 10);
  ASSERT_TRUE(feed(model, 30, 14.0, 3));
  EXPECT_NEAR(model.line().fixed_s, 2.0, 0.2);
  EXPECT_NEAR(model.line().per_sample_s, 0.4, 0.02);
  EXPECT_EQ(model.count(10), 1);
}

TEST(DeviceModel, ForgetsOldBatchSizes) {
  DeviceModel model;
  for (int batch = 1; batch <= 50; ++batch) feed(model, batch, batch, 3);
  EXPECT_EQ(model.count(1), 0);
  EXPECT_EQ(model.count(50), 3);
}

TEST(DeviceModel, BoundsItsWindow) {
  DeviceModel model;
  feed(model, 10, 1.0, 1000);
  EXPECT_LT(model.count(10), 100);
}

}  // namespace
}  // namespace remuda::balance
