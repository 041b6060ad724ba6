// The pool of a recording.
#include "snapshot/recorded_pool.h"

#include <gtest/gtest.h>

#include "pool/transitions.h"

namespace remuda::snapshot {
namespace {

const Json kHost = parse_json(R"({
  "jobs": {
    "leases": [{"job": 7, "device": "a", "user": "ada", "since_s": 100, "until_s": 400},
               {"job": 7, "device": "b", "user": "ada", "since_s": 100, "until_s": 400},
               {"device": "c", "holder": "eve", "since_s": 50}],
    "waiting": [{"id": 9, "user": "bob", "submitted_s": 150, "time_limit_s": 60, "after": [7],
                 "request": {"count": 2, "model": "*A100*"}},
                {"id": 10, "user": "bob", "request": {"count": "many"}}, "nonsense"]
  },
  "past": [{"job": 3, "device": "a", "user": "cat", "since_s": 0, "ended_s": 60},
           {"job": 3, "device": "b", "user": "cat", "since_s": 0, "ended_s": 60},
           {"job": 4, "device": "a", "user": "cat", "since_s": 60, "ended_s": 90}],
  "drains": [{"device": "d", "reason": "its fan is broken"}]
})",
                              "test")
                       .value();

TEST(RecordedPool, HasWhatTheRecordingTells) {
  pool::Policy policy;
  policy.half_life_s = 1e9;
  const RecordedPool recorded = recorded_pool(kHost, policy);
  EXPECT_EQ(check(recorded.state), "");
  const pool::Job& runs = *recorded.state.find(7);
  EXPECT_EQ(runs.state, pool::JobState::running);
  EXPECT_EQ(runs.request.count, 2);
  EXPECT_EQ(runs.time_limit_s, 300);
  const pool::Job& waits = *recorded.state.find(9);
  EXPECT_EQ(waits.request.model, "*A100*");
  EXPECT_EQ(waits.after, std::vector<int64_t>{7});
  EXPECT_EQ(waits.time_limit_s, 60);
  EXPECT_EQ(recorded.state.find(10), nullptr) << "nobody knows what it wants";
  ASSERT_EQ(recorded.held.size(), 2u);
  EXPECT_EQ(recorded.held[0].holder, "eve");
  EXPECT_EQ(recorded.held[1].barred, "is drained: its fan is broken");
  EXPECT_NEAR(usage_of(recorded.state, "cat", policy, 200), 150, 0.01);
  EXPECT_NEAR(usage_of(recorded.state, "ada", policy, 200), 200, 0.01);
}

TEST(RecordedPool, IsEmptyWhereTheRecordingTellsNothing) {
  const RecordedPool recorded = recorded_pool(Json{{"jobs", {{"leases", nullptr}}}, {"past", 3}}, {});
  EXPECT_EQ(recorded.state, pool::PoolState());
  EXPECT_TRUE(recorded.held.empty());
}

}  // namespace
}  // namespace remuda::snapshot
