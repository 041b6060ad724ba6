// How often the outlook is worked out.
#include "pool/latest_outlooks.h"

#include "pool/testing/schedule.h"

namespace remuda::pool {
namespace {

class LatestOutlooksTest : public ScheduleTest {
 protected:
  const std::map<int64_t, Outlook>& at(double steady_s) {
    return latest.of({state, box, foreign, policy, 100 + steady_s}, steady_s);
  }
  LatestOutlooks latest;
};

TEST_F(LatestOutlooksTest, AreWorkedOutWhenThePoolHasChanged) {
  add("ada", 2);
  look();
  const int64_t id = add("bob", 3);
  EXPECT_EQ(at(1).at(id).would_start.size(), 1u);
  for (double steady_s = 11; steady_s < 20; ++steady_s) at(steady_s);
  EXPECT_EQ(latest.made(), 1) << "nothing has changed";
  ASSERT_TRUE(pause(state, id, 0));
  EXPECT_EQ(at(20).at(id).would_start.size(), 0u);
  finish(1, 100);
  at(35);
  EXPECT_EQ(latest.made(), 3);
  at(35 + LatestOutlooks::kOldest_s);
  EXPECT_EQ(latest.made(), 4) << "time has passed";
}

TEST_F(LatestOutlooksTest, LeaveMostOfTheTimeToOthers) {
  add("ada", 4);
  look();
  add("bob", 3);
  at(1);
  add("cat", 3);
  at(1);
  EXPECT_EQ(latest.made(), 1) << "no time has passed since, but it took some";
  at(30);
  EXPECT_EQ(latest.made(), 2);
}

TEST_F(LatestOutlooksTest, AreOfFewJobs) {
  add("ada", 4);
  look();
  for (int n = 0; n < 40; ++n) add("bob", 1);
  EXPECT_EQ(at(1).size(), LatestOutlooks::kMost);
}

}  // namespace
}  // namespace remuda::pool
