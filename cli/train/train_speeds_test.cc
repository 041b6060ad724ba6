#include "cli/train/train_speeds.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "cli/train/testing/lab.h"

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::Optional;

/// What is kept of runs, in a folder of the test's own.
class TrainSpeeds : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_STATE_HOME"); }
  static Json report() {
    return {{"devices",
             {{{"id", "gpu:0"}, {"alone_samples_per_s", 250.0}}, {{"id", "cpu:0"}, {"alone_samples_per_s", 0}}}}};
  }
  ScratchFolder state_;
};

TEST_F(TrainSpeeds, AreKeptByDeviceAndJob) {
  const job::TrainJob job = job_on({{"gpu:0"}, {"cpu:0"}});
  EXPECT_THAT(known_speeds(job, lab()), ElementsAre(std::nullopt, std::nullopt));
  ASSERT_TRUE(keep_speeds(report(), job, lab()));
  EXPECT_THAT(known_speeds(job, lab()), ElementsAre(Optional(250.0), std::nullopt)) << "0 is not measured";
  job::TrainJob longer = job_on({{"gpu:1"}, {"gpu:0"}});
  longer.train.epochs = 7, longer.train.global_batch = 960, longer.train.learning_rate = 1;
  EXPECT_THAT(known_speeds(longer, lab()), ElementsAre(std::nullopt, Optional(250.0)));
  job::TrainJob wider = job_on({{"gpu:0"}}), slowed = job_on({{"gpu:0", 3}});
  wider.model.hidden = {512};
  EXPECT_THAT(known_speeds(wider, lab()), ElementsAre(std::nullopt));
  EXPECT_THAT(known_speeds(slowed, lab()), ElementsAre(std::nullopt));
  Inventory other = lab();
  other.host = "another";
  EXPECT_THAT(known_speeds(job, other), ElementsAre(std::nullopt, std::nullopt));
}

TEST_F(TrainSpeeds, HaveTheMemoryOfARunOnTheSameDevices) {
  const job::TrainJob job = job_on({{"gpu:0"}, {"cpu:0"}});
  Json measured = report();
  measured["devices"][0]["memory"] = {{"held_bytes", 1000.0}, {"fixed_bytes", 100.0}, {"per_sample_bytes", 10.0}};
  measured["devices"][1]["memory"] = {{"missing", "not one sample fits in it"}};
  ASSERT_TRUE(keep_speeds(measured, job, lab()));
  const auto known = known_memory(job, lab());
  ASSERT_TRUE(known.at(0));
  EXPECT_EQ(known[0]->held_bytes, 1000);
  EXPECT_EQ(known[0]->fixed_bytes, 100);
  EXPECT_EQ(known[0]->per_sample_bytes, 10);
  EXPECT_FALSE(known.at(1));
  EXPECT_EQ(known[0]->fetch_s, 0);
  measured["sharded"] = {{"bytes_per_pass", 500.0}, {"s_per_pass", 0.5}};
  ASSERT_TRUE(keep_speeds(measured, job, lab()));
  EXPECT_EQ(known_memory(job, lab()).at(0)->fetched_bytes, 500);
  EXPECT_EQ(known_memory(job, lab()).at(0)->fetch_s, 0.5);
  job::TrainJob longer = job, divided = job;
  longer.train.epochs = 7;
  EXPECT_TRUE(known_memory(longer, lab()).at(0));
  divided.balance.state_shares = {3, 1};
  EXPECT_FALSE(known_memory(divided, lab()).at(0)) << "holds another part of the optimizer's state";
  EXPECT_FALSE(known_memory(job_on({{"gpu:0"}}), lab()).at(0)) << "holds all of it";
}

TEST_F(TrainSpeeds, HaveWhatAStepTookOfEachDevice) {
  const job::TrainJob job = job_on({{"gpu:0"}, {"cpu:0"}});
  Json measured = report();
  const Json step{{"fixed_s", 0.001}, {"per_sample_s", 0.002}, {"update_s", 0.03}};
  measured["devices"][0]["alone_step"] = step;
  measured["devices"][1].update({{"alone_samples_per_s", 9}, {"alone_step", {{"per_sample_s", 0.1}, {"update_s", 0}}}});
  ASSERT_TRUE(keep_speeds(measured, job, lab()));
  const auto known = known_costs(job, lab());
  ASSERT_TRUE(known.at(0));
  EXPECT_EQ(known[0]->part.fixed_s, 0.001);
  EXPECT_EQ(known[0]->part.per_sample_s, 0.002);
  EXPECT_EQ(known[0]->update_s, 0.03);
  EXPECT_FALSE(known.at(1)) << "its update is not known";
  job::TrainJob other = job;
  other.train.momentum = 0.5;
  EXPECT_TRUE(known_costs(other, lab()).at(0));
  other.train.momentum = 0;
  EXPECT_FALSE(known_costs(other, lab()).at(0)) << "it has no state to update";
  for (const Json& wrong :
       {Json(), Json("fast"), Json{{"fixed_s", 1}}, Json::parse(R"({"per_sample_s": 1e999})", nullptr, false)}) {
    measured["devices"][0]["alone_step"] = wrong;
    ASSERT_TRUE(keep_speeds(measured, job, lab()));
    EXPECT_FALSE(known_costs(job, lab()).at(0)) << to_line(wrong);
  }
}

TEST_F(TrainSpeeds, OfRanksThatShareADeviceAreTheirOwn) {
  const job::TrainJob job = job_on({{"cpu:0", 1, true}, {"cpu:0", 2, true}});
  const Json devices{{{"id", "cpu:0"}, {"alone_samples_per_s", 80.0}},
                     {{"id", "cpu:0"}, {"alone_samples_per_s", 40.0}}};
  ASSERT_TRUE(keep_speeds({{"devices", devices}}, job, lab()));
  EXPECT_THAT(known_speeds(job, lab()), ElementsAre(Optional(80.0), Optional(40.0)));
  EXPECT_THAT(known_speeds(job_on({{"cpu:0"}}), lab()), ElementsAre(std::nullopt)) << "with all of its cores";
}

TEST_F(TrainSpeeds, InAFileThatIsNoneAreNotReadNorReplaced) {
  const job::TrainJob job = job_on({{"gpu:0"}});
  ASSERT_TRUE(keep_speeds(report(), job, lab()));
  for (const char* text : {"", "[", "[]", "{\"version\": 2, \"speeds\": {}}", "{\"version\": 1, \"speeds\": [1]}"}) {
    state_.write("remuda/train-speeds.json", text);
    EXPECT_THAT(known_speeds(job, lab()), ElementsAre(std::nullopt)) << text;
    EXPECT_FALSE(keep_speeds(report(), job, lab())) << text;
    EXPECT_EQ(state_.read("remuda/train-speeds.json"), text);
  }
}

}  // namespace
}  // namespace remuda::cli
