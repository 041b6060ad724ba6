#include "share/job_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::share {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Jobs 1 and 2 are alice's, 3 is bob's; ids ascend, and so do the leases' times.
pool::PoolState shared_machine() {
  pool::PoolState state;
  for (const auto& [id, user, uid] : {std::tuple{1, "alice", 1000}, std::tuple{2, "alice", 1000}, {3, "bob", 1001}})
    state.jobs.push_back({.id = id, .user = user, .uid = uid, .state = pool::JobState::running});
  state.leases = {{.job = 1, .device = "a", .share = 0.3, .since_s = 10},
                  {.job = 2, .device = "a", .share = 0.3, .since_s = 20},
                  {.job = 2, .device = "b", .share = 0.3, .since_s = 20},
                  {.job = 3, .device = "a", .share = 0.3, .since_s = 30},
                  {.job = 3, .device = "c", .share = 1, .since_s = 30}};
  return state;
}

TEST(JobSharing, TellsHowALeaseIsShared) {
  pool::PoolState state = shared_machine();
  state.jobs[0].daemons = {"a"};
  const Inventory inventory{.devices = {{.id = "a", .kind = DeviceKind::gpu},
                                        {.id = "b", .kind = DeviceKind::partition, .parent = "d"},
                                        {.id = "c", .kind = DeviceKind::gpu}}};
  std::vector<std::string> words;
  for (const pool::Lease& lease : state.leases) words.emplace_back(to_string(sharing_of(state, lease, inventory)));
  EXPECT_THAT(words, ElementsAre("mps", "time slices", "mig", "time slices", "whole"));
}

TEST(JobSharing, KnowsWhichDevicesAUserHasPartsOf) {
  EXPECT_THAT(devices_shared_by(shared_machine(), 1000), ElementsAre("a", "b"));
  EXPECT_THAT(devices_shared_by(shared_machine(), 1000, 2), ElementsAre("a"));
  EXPECT_THAT(devices_shared_by(shared_machine(), 1001), ElementsAre("a")) << "c is his whole";
  EXPECT_THAT(devices_shared_by(shared_machine(), 1001, 3), IsEmpty());
}

TEST(JobSharing, LeavesTheDaemonToTheUserWhoCameFirst) {
  pool::PoolState state = shared_machine();
  EXPECT_EQ(other_sharer(state, "a", 3), "alice");
  EXPECT_EQ(other_sharer(state, "a", 1), "");
  EXPECT_EQ(other_sharer(state, "a", 2), "");
  EXPECT_EQ(other_sharer(state, "b", 2), "");
  EXPECT_EQ(other_sharer(state, "b", 3), "") << "he has no part of it";
  for (pool::Lease& lease : state.leases) lease.since_s = 10;
  EXPECT_EQ(other_sharer(state, "a", 3), "alice") << "then the smaller number counts";
  EXPECT_EQ(other_sharer(state, "a", 2), "");
}

}  // namespace
}  // namespace remuda::share
