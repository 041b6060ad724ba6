#include "monitor/job_activity.h"

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::monitor {
namespace {

/// A child of this process that does this for as long as the object lives.
class Child {
 public:
  explicit Child(void (*work)()) : pid_(::fork()) {
    if (pid_ != 0) return;
    work();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  int id() const { return pid_; }

 private:
  pid_t pid_;
};

void sleep_on() { ::pause(); }
void compute() {
  for (std::atomic<unsigned> count = 0;; ++count) {
  }
}

Seen look(JobActivity& activity, double now_s, const std::vector<int>& pids) {
  Seen seen;
  activity.look(now_s, pids, seen);
  return seen;
}

TEST(JobActivity, KnowsNothingAtFirstAndOfNobody) {
  const Child child(sleep_on);
  JobActivity activity;
  EXPECT_LT(look(activity, 0, {child.id()}).cores, 0);
  EXPECT_LT(look(activity, 10, {}).cores, 0);
  EXPECT_LT(look(activity, 20, {1 << 30}).cores, 0) << "it has ended";
}

TEST(JobActivity, OneThatSleepsUsesNothing) {
  const Child child(sleep_on);
  JobActivity activity;
  look(activity, 0, {child.id()});
  const Seen seen = look(activity, 10, {child.id()});
  EXPECT_EQ(seen.cores, 0);
  EXPECT_FALSE(seen.waits_for_input);
  EXPECT_FALSE(seen.hides_input);
}

TEST(JobActivity, WhatMayNotBeReadIsNotNothing) {
  const Child child(sleep_on);
  const ScratchFolder nothing;
  JobActivity activity(nothing.path());
  look(activity, 0, {child.id()});
  const Seen seen = look(activity, 10, {child.id()});
  EXPECT_EQ(seen.cores, 0);
  EXPECT_TRUE(seen.hides_input);
}

TEST(JobActivity, OneThatHasEndedHidesNothing) {
  const Child child([] { ::_exit(0); });
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.id()), &info, WEXITED | WNOWAIT), 0);
  const ScratchFolder nothing;
  JobActivity activity(nothing.path());
  EXPECT_FALSE(look(activity, 0, {child.id()}).hides_input);
}

TEST(JobActivity, OneThatComputesUsesTheHost) {
  const Child child(compute);
  JobActivity activity;
  look(activity, 0, {child.id()});
  Seen seen;
  double now_s = 0;
  while (now_s < 1000 && seen.cores <= 0) seen = look(activity, now_s += 0.01, {child.id()});  // until it had a turn
  EXPECT_GT(seen.cores, 0);
}

TEST(JobActivity, ReadsOfFilesAreSeen) {
  const Child child([] {
    static char bytes[1 << 20];
    const int file = ::open("/dev/zero", O_RDONLY);
    while (::read(file, bytes, sizeof bytes) > 0) {
    }
  });
  JobActivity activity;
  look(activity, 0, {child.id()});
  bool reads = false;
  for (double now_s = 0.01; now_s < 100 && !reads; now_s += 0.01)
    reads = look(activity, now_s, {child.id()}).waits_for_input;
  EXPECT_TRUE(reads);
  EXPECT_FALSE(look(activity, 1e9, {child.id()}).waits_for_input) << "that is little for so long";
}

}  // namespace
}  // namespace remuda::monitor
