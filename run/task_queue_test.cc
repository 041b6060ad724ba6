#include "run/task_queue.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr process::ExitState kWell{}, kBadly{7, 0};

/// "task@device" for all that starts now.
std::vector<std::string> starts(TaskQueue& queue) {
  std::vector<std::string> started;
  while (const auto next = queue.next())
    started.push_back(std::to_string(next->task) + "@" + std::to_string(next->device));
  return started;
}

TaskQueue opened(size_t tasks, TaskQueue::Rules rules = {}, const std::vector<std::string>& devices = {"a", "b"}) {
  TaskQueue queue(tasks, std::move(rules));
  queue.open(devices);
  return queue;
}

TEST(TaskQueue, GivesTheNextTaskToTheDeviceThatIsDone) {
  TaskQueue queue = opened(5);
  EXPECT_THAT(starts(queue), ElementsAre("0@0", "1@1"));
  EXPECT_THAT(starts(queue), ElementsAre());
  for (const char* next : {"2@1", "3@1", "4@1"}) {
    queue.ended(1, kWell, 1);
    EXPECT_THAT(starts(queue), ElementsAre(next));
  }
  queue.ended(1, kWell, 1);
  EXPECT_FALSE(queue.over());
  queue.ended(0, kWell, 4);
  EXPECT_TRUE(queue.over());
  EXPECT_EQ(queue.done(), 5U);
  EXPECT_FALSE(queue.trouble());
  EXPECT_EQ(queue.tallies()[1].tasks, 4);
  EXPECT_EQ(queue.tallies()[0].seconds, 4);
}

TEST(TaskQueue, GoesOnAfterAFailureAndRemembersTheFirst) {
  TaskQueue queue = opened(3);
  starts(queue);
  queue.ended(1, kBadly, 1);
  EXPECT_THAT(starts(queue), ElementsAre("2@1"));
  queue.ended(0, {0, SIGKILL}, 1);
  queue.ended(1, kWell, 1);
  EXPECT_TRUE(queue.over());
  ASSERT_TRUE(queue.trouble());
  EXPECT_EQ(queue.trouble()->status, 7);
  EXPECT_THAT(queue.failures(), SizeIs(2));
}

TEST(TaskQueue, StartsNothingAfterAFailureWhereOneEndsAll) {
  TaskQueue queue = opened(4, {.fail_fast = true});
  starts(queue);
  queue.ended(0, kBadly, 1);
  EXPECT_THAT(starts(queue), ElementsAre());
  EXPECT_TRUE(queue.is_failing());
  queue.ended(1, {0, SIGTERM}, 1);
  EXPECT_TRUE(queue.over());
  EXPECT_EQ(queue.trouble()->status, 7);
  EXPECT_EQ(queue.stopped(), 1U);
  EXPECT_EQ(queue.waiting(), 2U);
}

TEST(TaskQueue, TriesAgainBehindAllOthersAndOnAnyDevice) {
  TaskQueue queue = opened(3, {.retries = 2});
  EXPECT_THAT(starts(queue), ElementsAre("0@0", "1@1"));
  queue.ended(0, kBadly, 1);
  EXPECT_THAT(starts(queue), ElementsAre("2@0"));
  queue.ended(1, kWell, 1);
  EXPECT_THAT(starts(queue), ElementsAre("0@1"));
  queue.ended(1, kBadly, 1);
  EXPECT_THAT(starts(queue), ElementsAre("0@1"));
  queue.ended(1, kBadly, 1);
  EXPECT_THAT(starts(queue), ElementsAre()) << "twice is enough";
  queue.ended(0, kWell, 1);
  EXPECT_TRUE(queue.over());
  EXPECT_THAT(queue.failures(), SizeIs(1));
}

TEST(TaskQueue, TriesAgainAfterTheNamedExitCodesAlone) {
  TaskQueue queue = opened(2, {.retries = 1, .retry_on = {128 + SIGKILL}});
  starts(queue);
  queue.ended(0, {0, SIGKILL}, 1);
  queue.ended(1, kBadly, 1);
  EXPECT_THAT(starts(queue), ElementsAre("0@0"));
}

TEST(TaskQueue, GoesOnAfterAStopWhenItIsOpenedAgain) {
  TaskQueue queue = opened(4);
  starts(queue);
  queue.close();
  queue.ended(0, {0, SIGTERM}, 1);
  EXPECT_THAT(starts(queue), ElementsAre());
  queue.ended(1, kWell, 1);
  EXPECT_TRUE(queue.over());
  EXPECT_EQ(queue.trouble()->signal, SIGTERM);
  queue.open({"b", "c", "d"});
  EXPECT_THAT(starts(queue), ElementsAre("0@0", "2@1", "3@2"));
  for (size_t device = 0; device < 3; ++device) queue.ended(device, kWell, 1);
  EXPECT_FALSE(queue.trouble());
  EXPECT_EQ(queue.tallies()[1].tasks, 2) << "b had one before";
}

TEST(TaskQueue, IsNoSuccessWhereTasksWereNeverStarted) {
  TaskQueue queue = opened(3);
  starts(queue);
  queue.close();
  queue.ended(0, kWell, 1);
  queue.ended(1, kWell, 1);
  ASSERT_TRUE(queue.trouble());
  EXPECT_EQ(queue.trouble()->signal, SIGTERM);
}

TEST(TaskQueue, SaysHowFarItIs) {
  TaskQueue queue = opened(3);
  starts(queue);
  queue.ended(0, kBadly, 1);
  EXPECT_EQ(progress_text(queue), "0 of 3 tasks done, 1 at work, 1 failed");
}

TEST(TaskQueue, SumsUp) {
  TaskQueue queue = opened(4);
  starts(queue);
  queue.ended(0, kWell, 0.25);
  starts(queue);
  queue.ended(0, kBadly, 0.75);
  queue.close();
  queue.ended(1, {0, SIGTERM}, 90);
  EXPECT_EQ(summary_text(queue, {{1, ""}, {3, ""}, {4, ""}, {9, ""}}),
            "1 task done, 1 failed (line 4: status 7), 1 stopped, 1 not started; a 2 of 0.50 s each, b 1 of 90 s");
}

TEST(TaskQueue, NamesTenFailuresAndNoMore) {
  TaskQueue queue = opened(12, {}, {"a"});
  std::vector<Task> tasks;
  for (int line = 1; queue.next(); ++line) {
    tasks.push_back({line, ""});
    queue.ended(0, {0, SIGSEGV}, 1);
  }
  const std::string text = summary_text(queue, tasks);
  EXPECT_THAT(text, HasSubstr("12 failed (line 1: signal 11, "));
  EXPECT_THAT(text, HasSubstr("line 10: signal 11, ...);"));
}

}  // namespace
}  // namespace remuda::run
