// What becomes of the jobs that wait.
#include "pool/outlook.h"

#include <gmock/gmock.h>

#include "pool/testing/schedule.h"

namespace remuda::pool {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OutlookTest : public ScheduleTest {
 protected:
  int64_t add_limited(const std::string& user, int count, double limit_s) {
    Job job = test_job(user, count);
    job.time_limit_s = limit_s;
    return add(job);
  }
  Outlook of(int64_t id) { return outlook_of({state, box, foreign, policy, 100}, job(id)); }
  /// Each of them is what makes the scheduler start it.
  std::vector<std::string> changes(int64_t id) {
    std::vector<std::string> texts;
    for (const place::Relaxation& one : of(id).would_start) {
      PoolState other = state;
      other.find(id)->request = one.request;
      EXPECT_THAT(schedule(other, box, foreign, policy, 100), ::testing::Contains(id)) << one.change;
      texts.push_back(one.change);
    }
    return texts;
  }
};

TEST_F(OutlookTest, SaysWhatAJobWouldHaveToGiveUpToStart) {
  add_limited("ada", 2, 1000);
  look();
  const int64_t id = add("bob", 3);
  EXPECT_THAT(changes(id), ElementsAre("with -n 2"));
  EXPECT_EQ(of(id).start.starts_s, 1100);
  EXPECT_EQ(job(id).state, JobState::waiting) << "nothing was changed";
}

TEST_F(OutlookTest, WhatOthersHaveWaitedForIsNotOffered) {
  policy.patience_s = 50;
  add("ada", 2);
  look(10);
  add("bob", 3, 20);
  const int64_t behind = add("cat", 2, 90);
  EXPECT_THAT(changes(behind), IsEmpty()) << "two are free, and kept for bob";
}

TEST_F(OutlookTest, ALimitOfThePolicyIsMetByFewerDevices) {
  policy.limits = {{.who = {}, .devices = policy::Rule<int>{2, "policy.toml:3"}}};
  add("ada", 1);
  look();
  const int64_t id = add("ada", 2);
  EXPECT_THAT(changes(id), ElementsAre("with -n 1"));
}

TEST_F(OutlookTest, NothingIsOfferedToWhoStartsInAnyCaseOrNotAtAll) {
  const int64_t free = add("ada", 2);
  EXPECT_THAT(changes(free), IsEmpty());
  add("bob", 4);
  look();
  const int64_t later = add("cat", 4);
  ASSERT_TRUE(pause(state, later, 0));
  EXPECT_THAT(changes(later), IsEmpty());
  state.find(later)->paused = false;
  state.find(later)->why = std::string(kNoPolicy) + "policy.toml:1: no such key";
  EXPECT_THAT(of(later).would_start, IsEmpty());
  EXPECT_EQ(of(later).start.unknown, "that is up to who mends the policy");
}

TEST_F(OutlookTest, IsThatOfTheFirstInTurnAlone) {
  add_limited("ada", 4, 1000);
  look();
  std::vector<int64_t> ids;
  for (int n = 0; n < 5; ++n) ids.push_back(add("bob", 1));
  const auto all = outlooks({state, box, foreign, policy, 100}, 3);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all.contains(ids[0]) && all.contains(ids[2]));
  Json json = Json::object();
  add_outlook(all.at(ids[0]), json);
  EXPECT_EQ(json, (Json{{"starts_s", 1100.0}, {"starts_on", {"gpu:0"}}, {"starts_after", 1}}));
}

TEST_F(OutlookTest, StandingsAreInTheOrderOfTurns) {
  policy.half_life_s = 1000;
  add("ada", 3);
  add("bob", 1);
  look();
  add("cat", 2);
  add("ada", 1);
  const auto all = standings(state, policy, 1100);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].user, "cat");
  EXPECT_EQ(all[0].waiting, 1u);
  EXPECT_EQ(all[1].user, "bob");
  EXPECT_EQ(all[2].holds, 3);
  EXPECT_DOUBLE_EQ(all[2].usage_s, 3 * faded_seconds(100, 1100, policy));
  EXPECT_DOUBLE_EQ(all[2].part, 0.75);
  const auto turns = waiting_jobs(state, policy, 1100);
  EXPECT_EQ(turns.front()->user, all.front().user);
  EXPECT_EQ(standings_json(state, policy, 1100)["half_life_s"], 1000);
  const int64_t array = add("cat", 1);
  state.find(array)->array = array;
  EXPECT_EQ(standings(state, policy, 1100)[0].waiting, 1u) << "an array is no job that waits for devices";
}

}  // namespace
}  // namespace remuda::pool
