// What a pool keeps of its state from one change to the next.
#include "pool/kept_state.h"

#include <gtest/gtest.h>

#include "pool/pool.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

TEST(KeptState, KeepsDrainsAlone) {
  const TestFolder folder;
  {
    Pool pool = Pool::open(folder.path("pool")).value();
    ASSERT_TRUE(pool.change([](PoolState& state) { return drain(state, {"gpu:0", "the fan is broken", "root", 5}); }));
    EXPECT_EQ(pool.seen().drains.size(), 1U);
    ASSERT_FALSE(pool.change([](PoolState& state) -> Result<void> {
      REMUDA_TRY(undrain(state, "gpu:0", "gpu:0"));
      return failed("no");
    }));
    EXPECT_EQ(pool.seen().drains.size(), 1U);
  }
  EXPECT_EQ(Pool::open(folder.path("pool"))->read()->drains.size(), 1U);
}

TEST(KeptState, KeepsAnEndedJobAsLongAsAnotherWaitsForIt) {
  const Job before{.id = 1, .state = JobState::ended}, waits{.id = 2, .after = {1}, .state = JobState::waiting};
  KeptState kept;
  kept.set({.next_job = 3, .jobs = {waits}});
  kept.add({before});
  kept.forget_ended({1});
  EXPECT_NE(kept.state().find(1), nullptr);
  kept.set({.next_job = 3, .jobs = {before}});
  kept.forget_ended({1});
  EXPECT_EQ(kept.state().find(1), nullptr);
}

TEST(KeptState, KnowsWhatAJobThatIsQueuedAgainHadWaitedFor) {
  const TestFolder folder;
  Pool pool = Pool::open(folder.path("pool")).value();
  const Inventory box = test_box(1);
  const auto start = [&](PoolState& state) -> Result<void> {
    schedule(state, box, {}, {}, 10);
    return {};
  };
  ASSERT_TRUE(pool.change([&](PoolState& state) -> Result<void> {
    REMUDA_TRY(submit(state, test_job("ada", 1), box, 1));
    return start(state);
  }));
  ASSERT_TRUE(pool.change([](PoolState& state) -> Result<void> {
    end(state, 1, {}, {}, 5);
    return {};
  }));
  Job later = test_job("ada", 1);
  later.after = {1};
  ASSERT_TRUE(pool.change(
      [&](PoolState& state) -> Result<void> {
        REMUDA_TRY(submit(state, later, box, 6));
        return start(state);
      },
      {1}));
  ASSERT_TRUE(pool.change([](PoolState& state) -> Result<void> {
    requeue(state, 2, {}, 8);
    return {};
  }));
  ASSERT_TRUE(pool.change(start));
  EXPECT_EQ((*pool.find(2))->state, JobState::running);
}

}  // namespace
}  // namespace remuda::pool
