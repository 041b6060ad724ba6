#include <gmock/gmock.h>

#include "job/testing/job.h"

namespace remuda::job {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

Setting setting(const std::string& key, const std::string& value) { return {key, value}; }

TEST(JobSettings, AreAllKeysButPathsWithTheirValues) {
  const auto parsed = parse(kMlpJob, {"train.seed=7"}, {{"cpu:0", 1}, {"cpu:1", 2.5}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto settings = settings_of(parsed->job);
  EXPECT_THAT(settings, Contains(setting("train.seed", "7")));
  EXPECT_THAT(settings, Contains(setting("device.use of device 0", "cpu:0")));
  EXPECT_THAT(settings, Contains(setting("device.slowdown of device 1", "2.5")));
  for (const Setting& one : settings) EXPECT_EQ(one.key.find("images"), std::string::npos);
}

TEST(DeviceNames, TellRanksOnOneDeviceApart) {
  const TrainJob job{.devices = {{"gpu:0", 1, true}, {"cpu:0", 1, true}, {"gpu:0", 2, true}}};
  EXPECT_THAT(device_names(job), ElementsAre("gpu:0 #1", "cpu:0", "gpu:0 #2"));
  EXPECT_EQ(ranks_on_device_of(job, 2), 2);
  EXPECT_EQ(ranks_on_device_of(job, 1), 1);
}

TEST(JobSettings, AnyChangedValueChangesThem) {
  const auto first = parse(kMlpJob), same = parse(kMlpJob);
  ASSERT_TRUE(first && same);
  EXPECT_EQ(settings_of(first->job), settings_of(same->job));
  for (const char* change : {"train.seed=99", "train.learning_rate=0.123456789012345", "train.epochs=77",
                             "model.hidden=[3,4]", "balance.policy=even", "train.optimizer=adamw"}) {
    const auto other = parse(kMlpJob, {change});
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_NE(settings_of(other->job), settings_of(first->job)) << change;
  }
}

TEST(JobSettings, OfOneThatJoinsAreNeitherDevicesNorHowTheRunBegan) {
  const auto first =
      parse(kMlpJob, {"elastic.join=:29600", "checkpoint.folder=kept", "checkpoint.resume=on"}, {{"cpu:0"}, {"cpu:1"}});
  const auto joining = parse(kMlpJob, {"checkpoint.folder=here"}, {{"gpu:0", 2}});
  const auto other = parse(kMlpJob, {"checkpoint.folder=here", "train.seed=99"}, {{"gpu:0", 2}});
  const auto keeps_nothing = parse(kMlpJob, {}, {{"gpu:0", 2}});
  ASSERT_TRUE(first && joining && other && keeps_nothing);
  EXPECT_EQ(settings_to_join(first->job), settings_to_join(joining->job));
  EXPECT_NE(settings_to_join(first->job), settings_to_join(other->job));
  EXPECT_NE(settings_to_join(first->job), settings_to_join(keeps_nothing->job))
      << "whether there is a folder, not which";
}

TEST(OnRanks, KeepsTheirDevicesAndWeights) {
  const TrainJob job{.balance = {.policy = balance::BalancePolicy::fixed, .shares = {1, 2, 3}},
                     .devices = {{"gpu:0"}, {"gpu:1"}, {"cpu:0"}}};
  const TrainJob left = on_ranks(job, {0, 2});
  EXPECT_THAT(left.devices, ElementsAre(DeviceSpec{"gpu:0"}, DeviceSpec{"cpu:0"}));
  EXPECT_THAT(left.balance.shares, ElementsAre(1, 3));
  EXPECT_TRUE(left.balance.state_shares.empty()) << "none were given";
}

TEST(JobFiles, AreThePathsThatAreGiven) {
  TrainJob job;
  job.data.train.images = "/a";
  job.data.train.labels = "/b";
  EXPECT_THAT(files_of(job), ElementsAre(setting("data.train.images", "/a"), setting("data.train.labels", "/b")));
  EXPECT_FALSE(job.data.test);
  job.model.path = "/m";
  EXPECT_THAT(files_of(job), Contains(setting("model.path", "/m")));
}

TEST(JobFiles, ThatAreWrittenAreOfTheirOwn) {
  TrainJob job;
  job.model.weights = "/in";
  job.output.weights = "/out";
  EXPECT_THAT(files_of(job), ElementsAre(setting("model.weights", "/in")));
  EXPECT_THAT(outputs_of(job), ElementsAre(setting("output.weights", "/out")));
  for (const Setting& one : settings_of(job)) EXPECT_EQ(one.key.find("weights"), std::string::npos) << "it is a path";
}

}  // namespace
}  // namespace remuda::job
