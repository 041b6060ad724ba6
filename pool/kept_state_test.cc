// What a pool keeps of its state from one change to the next.
#include "pool/kept_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pool/pool.h"
#include "pool/testing/pool.h"
#include "pool/transitions.h"

namespace remuda::pool {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

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

TEST(KeptState, FindsWhatHasChangedHoweverItWasChanged) {
  KeptState kept;
  kept.set({.next_job = 6, .jobs = {{.id = 1}, {.id = 2}, {.id = 3}, {.id = 4}, {.id = 5}}});
  PoolState& draft = kept.draft();
  draft.find(1)->why = "found";
  draft.jobs[1].why = "at its place";
  for (const Job& job : draft.jobs)
    if (job.id == 3) draft.jobs.edit(job).why = "while going through all";
  EXPECT_EQ(draft.find(4)->why, "");
  draft.jobs.push_back({.id = draft.next_job++});
  EXPECT_THAT(kept.clean_changed(), ElementsAre(1, 2, 3, 6)) << "4 was touched, and is as it was";
  kept.accept({1, 2, 3, 6});
  EXPECT_EQ(kept.state(), kept.draft());
  EXPECT_THAT(kept.clean_changed(), IsEmpty());
}

TEST(KeptState, UndoesWhatWasTouchedAndAdded) {
  KeptState kept;
  kept.set({.next_job = 3, .jobs = {{.id = 1}, {.id = 2}}, .usage = {{.user = "ada"}}});
  const PoolState before = kept.state();
  PoolState& draft = kept.draft();
  draft.jobs.back().why = "changed";
  draft.jobs.push_back({.id = draft.next_job++});
  draft.jobs.back().why = "added and changed";
  draft.usage.clear();
  kept.undo();
  EXPECT_EQ(kept.draft(), before);
  EXPECT_THAT(kept.clean_changed(), IsEmpty());
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
