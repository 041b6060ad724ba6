#include "cli/jobs/array_jobs.h"

#include <gmock/gmock.h>

namespace remuda::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kArray = 5;

pool::Job array_of(const std::string& indices) {
  pool::Job job;
  job.id = job.array = kArray;
  job.command = {"--array", indices, "./sweep.sh"};
  return job;
}

pool::Job job_of(int index, pool::JobState state, int status = 0) {
  pool::Job job;
  job.id = kArray + 1 + index;
  job.array = kArray;
  job.array_index = index;
  job.state = state;
  job.exit_status = status;
  return job;
}

std::vector<pool::Job> some_jobs() {
  pool::Job cancelled = job_of(2, pool::JobState::ended, 143);
  cancelled.cancelled = true;
  return {job_of(0, pool::JobState::ended), job_of(1, pool::JobState::ended, 3), cancelled,
          job_of(3, pool::JobState::running), job_of(4, pool::JobState::waiting)};
}

TEST(ArrayJobs, AreCountedByWhatBecameOfThem) {
  const pool::Job array = array_of("0-9");
  const ArrayStates states = array_states(array, some_jobs());
  EXPECT_THAT(states.done, ElementsAre(0));
  EXPECT_THAT(states.failed, ElementsAre(1));
  EXPECT_THAT(states.cancelled, ElementsAre(2));
  EXPECT_THAT(states.running, ElementsAre(3));
  EXPECT_THAT(states.waiting, ElementsAre(4));
  EXPECT_THAT(states.not_started, ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(states.not_done(), ElementsAre(1, 2, 5, 6, 7, 8, 9));
  EXPECT_EQ(states_text(array, states), "1 done, 1 failed, 1 cancelled, 1 running, 6 waiting");
  pool::Job paused = array;
  paused.paused = true;
  EXPECT_EQ(states_text(paused, states), "1 done, 1 failed, 1 cancelled, 1 running, 6 waiting; paused");
}

TEST(ArrayJobs, OfAnArrayThatEndedBeforeThemDidNotStart) {
  pool::Job array = array_of("0-3");
  array.state = pool::JobState::ended;
  const std::vector<pool::Job> jobs{job_of(0, pool::JobState::ended)};
  EXPECT_EQ(states_text(array, array_states(array, jobs)), "1 done, 3 not started");
  array.cancelled = true;
  EXPECT_EQ(states_text(array, array_states(array, jobs)), "1 done, 3 cancelled");
}

TEST(ArrayJobs, AreKnownWhereTheIndicesAreNot) {
  pool::Job array = array_of("0-...");  // cut short
  EXPECT_EQ(states_text(array, array_states(array, some_jobs())),
            "1 done, 1 failed, 1 cancelled, 1 running, 1 waiting");
  array.command.clear();
  EXPECT_THAT(array_states(array, {}).not_done(), IsEmpty());
}

}  // namespace
}  // namespace remuda::cli
