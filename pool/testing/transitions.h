// For tests of transitions: the state of a pool of four GPUs, which is consistent at the end of each test.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "pool/testing/pool.h"
#include "pool/transitions.h"

namespace remuda::pool {

/// Makes the job an array's own, which waits until the array's jobs have ended.
inline int64_t make_array(PoolState& state, int64_t id) {
  state.find(id)->array = id;
  return id;
}

class TransitionsTest : public ::testing::Test {
 protected:
  ~TransitionsTest() override { EXPECT_EQ(check(state), ""); }

  int64_t add(Job job, double now_s = 100) {
    const auto id = submit(state, std::move(job), box, now_s);
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }
  int64_t add(const std::string& user, int count) { return add(test_job(user, count)); }
  std::string refusal(Job job) {
    const auto id = submit(state, std::move(job), box, 100);
    return id ? "" : id.error().message;
  }
  std::vector<int64_t> look(double now_s = 100) { return schedule(state, box, {}, policy, now_s); }
  const Job& job(int64_t id) { return *state.find(id); }

  Inventory box = test_box(4);
  PoolState state;
  Policy policy;
};

}  // namespace remuda::pool
