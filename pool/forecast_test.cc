#include "pool/forecast.h"

#include <gmock/gmock.h>

#include "pool/testing/schedule.h"

namespace remuda::pool {
namespace {

using ::testing::HasSubstr;

class ForecastTest : public ScheduleTest {
 protected:
  int64_t add_limited(const std::string& user, int count, double limit_s) {
    Job job = test_job(user, count);
    job.time_limit_s = limit_s;
    return add(job);
  }
  Forecast of(int64_t id) { return forecast(state, id, box, foreign, policy, 100); }
};

TEST_F(ForecastTest, AddsUpTheTimeLimitsOfThoseBefore) {
  add_limited("ada", 4, 1000);
  look();
  const int64_t first = add_limited("bob", 3, 500), beside = add_limited("eve", 1, 10), last = add("cat", 4);
  EXPECT_EQ(of(first).starts_s, 1100);
  EXPECT_EQ(of(beside).starts_s, 1100);
  EXPECT_EQ(of(last).starts_s, 1600);
  EXPECT_EQ(of(last).unknown, "");
}

TEST_F(ForecastTest, SaysOnWhichDevicesAndWhatMustEndThere) {
  add_limited("ada", 2, 1000);
  add_limited("bob", 2, 300);
  look();
  const int64_t pair = add_limited("eve", 2, 100), last = add("cat", 2);
  const auto all = forecasts(state, {pair, last}, box, foreign, policy, 100);
  EXPECT_EQ(all.at(pair).devices, (std::vector<std::string>{"gpu:2", "gpu:3"}));
  EXPECT_EQ(all.at(pair).ends, 1u) << "ada's goes on, elsewhere";
  EXPECT_EQ(all.at(last).starts_s, 500);
  EXPECT_EQ(all.at(last).ends, 2u) << "bob's, and then eve's";
  for (const int64_t id : {pair, last}) EXPECT_EQ(all.at(id).starts_s, of(id).starts_s) << "alone it is the same";
}

TEST_F(ForecastTest, TheMemoryThatAJobUsesComesFreeWithIt) {
  add_limited("ada", 4, 1000);
  look();
  for (Device& device : box.devices) device.status.memory_used_bytes = int64_t{15} << 30;
  Job job = test_job("bob", 2);
  job.request.memory_bytes = int64_t{12} << 30;
  EXPECT_EQ(of(add(job)).starts_s, 1100);
}

TEST_F(ForecastTest, MemoryOfADeviceIsUsedAsLongAsAnotherHasAPartOfIt) {
  const auto half_of_all = [&](double limit_s) {
    Job job = test_job("ada", 4);
    job.request.share = 0.5;
    job.time_limit_s = limit_s;
    return job;
  };
  add(half_of_all(1000));
  add(half_of_all(0));
  ASSERT_THAT(look(), ::testing::SizeIs(2));
  for (Device& device : box.devices) device.status.memory_used_bytes = int64_t{15} << 30;
  Job job = test_job("ada", 1);
  job.request.share = 0.5;
  const int64_t small = add(job);
  job.request.memory_bytes = int64_t{12} << 30;
  const int64_t large = add(job);
  EXPECT_EQ(of(small).starts_s, 1100);
  EXPECT_FALSE(of(large).starts_s);
}

TEST_F(ForecastTest, KnowsNothingBehindAJobWithoutALimit) {
  add_limited("ada", 4, 1000);
  look();
  const int64_t unlimited = add("bob", 4), behind = add_limited("bob", 4, 10);
  EXPECT_EQ(of(unlimited).starts_s, 1100);
  EXPECT_FALSE(of(behind).starts_s);
  EXPECT_EQ(of(behind).unknown, "gpu:0 is held by bob (job 2), which has no time limit");
}

/// 1970 began on a Thursday.
TEST_F(ForecastTest, StartsNoJobThatWouldMeetHoursOfOthers) {
  constexpr double kHour_s = 3600, kDay_s = 86400;
  policy::Reservation office{.devices = {"gpu:0", "gpu:1", "gpu:2", "gpu:3"}};
  office.who.users = {"eve"};
  office.hours = {.days = *policy::parse_days("Mon-Fri"), .from_min = 8 * 60, .to_min = 18 * 60};
  office.where = "policy.toml:7";
  policy.reservations = {office};
  const auto behind_seven_hours = [&](const std::string& user, double limit_s) {
    state = {};
    add_limited("ada", 4, 7 * kHour_s);
    look();
    return of(add_limited(user, 1, limit_s));
  };
  const double free_s = 100 + 7 * kHour_s;
  EXPECT_EQ(behind_seven_hours("eve", 0).starts_s, free_s);
  EXPECT_EQ(behind_seven_hours("bob", kHour_s / 2).starts_s, free_s);
  EXPECT_EQ(behind_seven_hours("bob", kHour_s).starts_s, 18 * kHour_s) << "it would not end by eight";
  EXPECT_EQ(behind_seven_hours("bob", 14 * kHour_s).starts_s, 18 * kHour_s);
  EXPECT_EQ(behind_seven_hours("bob", 15 * kHour_s).starts_s, kDay_s + 18 * kHour_s) << "over the weekend";
  for (const double limit_s : {0.0, 63 * kHour_s})
    EXPECT_EQ(behind_seven_hours("bob", limit_s).unknown,
              "gpu:0 is reserved for eve Mon-Fri 08:00-18:00, and the job might not end before (policy.toml:7)");
}

TEST_F(ForecastTest, WaitsForWhatMustEndBeforeAndForTheTimeToBegin) {
  Job later = test_job("ada", 1), after = test_job("ada", 1);
  later.begin_s = 5000;
  after.after = {add(later)};
  const int64_t waits = add(after);
  EXPECT_EQ(of(1).starts_s, 5000);
  EXPECT_EQ(of(waits).unknown, "job 1 must end before, and has no time limit");
  state.find(1)->time_limit_s = 60;
  EXPECT_EQ(of(waits).starts_s, 5060);
  ASSERT_TRUE(pause(state, 1, 0));
  EXPECT_EQ(of(waits).unknown, "job 1 must end before, and is paused");
  EXPECT_THAT(of(1).unknown, HasSubstr("paused"));
}

TEST_F(ForecastTest, KnowsNothingBehindAnArray) {
  Job array = test_job("ada", 1), one = test_job("ada", 1), after = test_job("bob", 1);
  const int64_t id = add(array);
  state.find(id)->array = id;
  one.array = id;
  one.time_limit_s = 60;
  add(one);
  look();
  after.after = {id};
  EXPECT_EQ(of(add(after)).unknown, "array 1 must end before it") << "more of its jobs may come";
}

TEST_F(ForecastTest, NamesWhatHoldsADeviceForAsLongAsItLikes) {
  foreign = {{.device = "gpu:0", .holder = "bob (process 7)"}};
  const int64_t job = add("ada", 4);
  EXPECT_EQ(of(job).unknown, "gpu:0 is in use by bob (process 7)");
  foreign.clear();
  ASSERT_TRUE(drain(state, {.device = "gpu:1", .reason = "its fan is broken"}));
  foreign = {{.device = "gpu:1", .barred = "is drained: its fan is broken"}};
  EXPECT_EQ(of(job).unknown, "gpu:1 is drained: its fan is broken");
}

TEST_F(ForecastTest, GivesTheGraceTimeToWhatIsOverItsLimit) {
  Job over = test_job("ada", 4);
  over.time_limit_s = 50;
  over.grace_s = 30;
  add(over, 10);
  look(10);
  EXPECT_EQ(of(add("bob", 4)).starts_s, 130);
}

TEST_F(ForecastTest, WhatIsToldToEndDoesNotEndWell) {
  Job over = test_job("ada", 1);
  over.time_limit_s = 50;
  const int64_t first = add(over, 10), evicted = add("eve", 1);
  look(10);
  state.find(evicted)->evicted = "its devices are idle";
  for (const int64_t before : {first, evicted}) {
    Job after = test_job("bob", 1);
    after.after = {before};
    const int64_t waits = add(after);
    EXPECT_EQ(of(waits).unknown, "a job that must end well before it is being ended");
    Job behind = test_job("bob", 1);
    behind.after = {waits};
    EXPECT_EQ(of(add(behind)).unknown, "a job that must end well before it is being ended");
  }
  Job any = test_job("bob", 1);
  any.after_any = {first};
  EXPECT_EQ(of(add(any)).starts_s, 101);
}

TEST_F(ForecastTest, QueuesAPreemptibleJobThatIsToldToEndAgain) {
  for (const bool is_evicted : {false, true}) {
    state = {};
    Job over = test_job("ada", 1);
    over.preemptible = true;
    over.time_limit_s = is_evicted ? 500 : 50;
    over.grace_s = 30;
    add(over, 10);
    look(10);
    if (is_evicted) state.jobs.front().evicted = "its devices are idle";
    Job after = test_job("bob", 1);
    after.after = {1};
    EXPECT_EQ(of(add(after)).starts_s, 130 + over.time_limit_s);
  }
}

TEST_F(ForecastTest, HasPreemptibleJobsMakeRoom) {
  Job low = test_job("ada", 4);
  low.preemptible = true;
  low.grace_s = 30;
  add(low);
  look();
  Job high = test_job("bob", 4);
  high.priority = 5;
  EXPECT_EQ(of(add(high)).starts_s, 130);
}

TEST_F(ForecastTest, LeavesAPolicysLimitAsTheReason) {
  policy.limits.push_back({.devices = policy::Rule<int>{1, "policy.toml:3"}});
  Job one = test_job("ada", 1);
  one.uid = 1000;
  add(one);
  look();
  EXPECT_THAT(of(add(one)).unknown, HasSubstr("may have 1 device at once"));
}

TEST_F(ForecastTest, EndsWithALongQueue) {
  for (int i = 0; i < 300; ++i) add_limited("ada", 4, 10);
  EXPECT_EQ(of(300).unknown, "more than 200 jobs wait");
}

}  // namespace
}  // namespace remuda::pool
