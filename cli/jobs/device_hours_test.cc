#include "cli/jobs/device_hours.h"

#include <gmock/gmock.h>

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kCounted_s = 100'000, kHour_s = 3600;

pool::Job job(const std::string& user, double started_s, double ended_s, std::vector<std::string> devices) {
  pool::Job job;
  job.user = user;
  job.started_s = started_s;
  job.ended_s = ended_s;
  job.state = ended_s > 0 ? pool::JobState::ended : pool::JobState::running;
  job.devices = std::move(devices);
  return job;
}

const place::RelativeSpeeds kSpeeds{.of = {{"fast", 1}, {"slow", 0.5}}, .basis = "measured"};

TEST(DeviceHours, CountsWhatRanWithinTheTimeByUser) {
  pool::Job half = job("bob", kCounted_s - kHour_s, 0, {"fast"});
  half.request.share = 0.5;
  const std::vector jobs{job("ada", kCounted_s - 3 * kHour_s, kCounted_s - kHour_s, {"fast", "slow"}), half};
  const DeviceHours hours = device_hours(jobs, UsageBy::user, kSpeeds, kCounted_s - 2 * kHour_s, kCounted_s);
  EXPECT_DOUBLE_EQ(hours.of.at("ada").device_s, 2 * kHour_s) << "one of its two hours, on two devices";
  EXPECT_DOUBLE_EQ(hours.of.at("ada").weighted_s, 1.5 * kHour_s);
  EXPECT_EQ(hours.of.at("ada").jobs, 1);
  EXPECT_DOUBLE_EQ(hours.of.at("bob").device_s, kHour_s / 2) << "up to now";
  EXPECT_TRUE(hours.unknown.empty());
}

TEST(DeviceHours, HaveThePriceOfTheirDevices) {
  pool::Job half = job("bob", kCounted_s - kHour_s, 0, {"fast"});
  half.request.share = 0.5;
  const std::vector jobs{half, job("ada", kCounted_s - kHour_s, 0, {"fast", "slow"}),
                         job("eve", kCounted_s - kHour_s, 0, {"slow"})};
  const DeviceHours hours = device_hours(jobs, UsageBy::user, kSpeeds, 0, kCounted_s, {{"fast", 3}});
  EXPECT_DOUBLE_EQ(hours.of.at("bob").cost.value, 1.5);
  EXPECT_EQ(monitor::money_text(hours.of.at("ada").cost), ">= 3.00") << "that of one of them is not known";
  EXPECT_EQ(monitor::money_text(hours.of.at("eve").cost), "-");
  Inventory inventory;
  inventory.devices = {Device{.id = "fast", .model = "H100"}, Device{.id = "slow", .model = "T4"}};
  policy::Policy policy;
  policy.tariffs = {{.model = "H*", .hour = 3}};
  EXPECT_EQ(hour_prices(inventory, policy), (HourPrices{{"fast", 3}}));
  EXPECT_THAT(priced_by_energy(inventory, policy), IsEmpty());
  policy.tariffs.push_back({.model = "T4", .kwh = 0.3});
  EXPECT_EQ(hour_prices(inventory, policy), (HourPrices{{"fast", 3}}));
  EXPECT_THAT(priced_by_energy(inventory, policy), ElementsAre("slow"));
}

TEST(DeviceHours, CountsByDeviceAndNamesThoseOfUnknownSpeed) {
  const std::vector jobs{job("ada", kCounted_s - kHour_s, 0, {"fast"}), job("bob", kCounted_s - 10, 0, {"gone"})};
  const DeviceHours hours = device_hours(jobs, UsageBy::device, kSpeeds, 0, kCounted_s);
  EXPECT_DOUBLE_EQ(hours.of.at("fast").device_s, kHour_s);
  EXPECT_DOUBLE_EQ(hours.of.at("gone").weighted_s, 10);
  EXPECT_THAT(hours.unknown, ElementsAre("gone"));
}

TEST(DeviceHours, CountsTheTurnsBeforeAJobWasQueuedAgain) {
  pool::Job again = job("ada", 0, 0, {});
  again.state = pool::JobState::waiting;
  again.earlier = {{kCounted_s - 500, kCounted_s - 400, {"fast"}}, {kCounted_s - 100, kCounted_s - 90, {"slow"}}};
  const DeviceHours hours = device_hours(std::vector{again}, UsageBy::user, kSpeeds, kCounted_s - 450, kCounted_s);
  EXPECT_DOUBLE_EQ(hours.of.at("ada").device_s, 60);
  EXPECT_EQ(hours.of.at("ada").jobs, 1);
  EXPECT_EQ(hours.without_devices, 0);
}

TEST(DeviceHours, SaysOfHowManyJobsTheDevicesAreNotKnown) {
  const std::vector jobs{job("ada", kCounted_s - 100, kCounted_s - 50, {}), job("ada", 100, 200, {})};
  EXPECT_EQ(device_hours(jobs, UsageBy::user, kSpeeds, kCounted_s - 500, kCounted_s).without_devices, 1)
      << "the other one ended before";
}

}  // namespace
}  // namespace remuda::cli
