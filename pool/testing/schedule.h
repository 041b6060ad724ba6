// For tests of what a scheduling pass does: a machine of four like GPUs and a queue.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "pool/testing/pool.h"
#include "pool/transitions.h"

namespace remuda::pool {

class ScheduleTest : public ::testing::Test {
 protected:
  ~ScheduleTest() override { EXPECT_EQ(check(state), ""); }

  int64_t add(Job job, double now_s = 100) {
    const auto id = submit(state, std::move(job), box, now_s);
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }
  int64_t add(const std::string& user, int count, double now_s = 100) { return add(test_job(user, count), now_s); }
  std::vector<int64_t> look(double now_s = 100) {
    auto started = schedule(state, box, foreign, policy, now_s);
    EXPECT_EQ(check(state), "");
    return started;
  }
  void finish(int64_t id, double now_s, int exit_status = 0) {
    end(state, id, {.exit_status = exit_status}, policy, now_s);
  }
  const Job& job(int64_t id) { return *state.find(id); }
  std::vector<std::string> devices(int64_t id) {
    std::vector<std::string> devices;
    for (const Lease& lease : state.leases)
      if (lease.job == id) devices.push_back(lease.device);
    return devices;
  }

  Inventory box = test_box(4);
  std::vector<place::Held> foreign;
  PoolState state;
  Policy policy;
};

}  // namespace remuda::pool
