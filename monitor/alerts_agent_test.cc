// What is said while the agent of the machine is silent: that it is, and of leases what was said before.
#include "monitor/testing/alerts_test.h"

namespace remuda::monitor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AlertsOfAgentTest : public AlertsTest {
 protected:
  void silence() {
    agent_answers_ = false;
    pool_ = {};
  }
};

TEST_F(AlertsOfAgentTest, OneThatDoesNotAnswerForLongerThanARestartTakes) {
  watch(60);
  EXPECT_THAT(rules(), IsEmpty()) << "there is none";
  agent_answers_ = true;
  watch(60);
  silence();
  watch(15);
  EXPECT_THAT(rules(), IsEmpty());
  watch(2);
  ASSERT_THAT(rules(), ElementsAre("agent silent"));
  EXPECT_EQ(alerts_.active()[0].label, "the agent");
  EXPECT_EQ(alerts_.active()[0].text, "nothing is known of leases and jobs: the agent speaks another protocol");
  agent_answers_ = true;
  watch(1);
  EXPECT_THAT(rules(), IsEmpty());
}

TEST_F(AlertsOfAgentTest, WhatWasSaidOfLeasesGoesOnMeanwhile) {
  agent_answers_ = true;
  hold();
  device().status.busy = 0;
  watch(31 * 60);
  ASSERT_THAT(rules(), ElementsAre("held and idle"));
  const double since_s = alerts_.active()[0].since_s;
  silence();
  watch(5 * 60);
  EXPECT_THAT(rules(), ElementsAre("agent silent", "held and idle"));
  agent_answers_ = true;
  hold();
  watch(1);
  ASSERT_THAT(rules(), ElementsAre("held and idle"));
  EXPECT_EQ(alerts_.active()[0].since_s, since_s);
}

TEST_F(AlertsOfAgentTest, WhatIsWrongWithDevicesIsSaidAllTheSame) {
  silence();
  device().status.xid = 79;
  watch(1);
  EXPECT_THAT(rules(), ElementsAre("device error"));
}

}  // namespace
}  // namespace remuda::monitor
