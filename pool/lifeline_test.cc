#include "pool/lifeline.h"

#include <chrono>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <poll.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "pool/pool.h"
#include "pool/testing/pool.h"

namespace remuda::pool {
namespace {

namespace fs = std::filesystem;

/// A process that this one cannot see, as in another container.
process::ProcessId stranger(int pid = 7) {
  process::ProcessId process = process::own_process_id();
  process.pid_namespace += 1;
  process.pid = pid;
  return process;
}

size_t lifelines_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder + "/lives"), fs::directory_iterator()));
}

bool has_ended(const Fd& end) {
  pollfd polled{end.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

/// A child that holds the stranger's lifeline, until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& folder) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd ready(ends[0]);
    Fd tell(ends[1]);
    const process::ProcessId held = stranger();
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto line = Lifeline::hold(folder, held);
      if (line) (void)!::write(tell.get(), "!", 1);
      for (;;) ::pause();
    }
    tell.reset();
    char byte;
    EXPECT_EQ(::read(ready.get(), &byte, 1), 1);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { kill(); }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

TEST(Lifeline, ShowsAStrangerAliveForAsLongAsItIsHeld) {
  const TestFolder folder;
  EXPECT_FALSE(lives(folder.path(), stranger()));
  EXPECT_FALSE(end_of(folder.path(), stranger()));
  {
    const auto line = Lifeline::hold(folder.path(), stranger());
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_TRUE(lives(folder.path(), stranger()));
    EXPECT_FALSE(lives(folder.path(), stranger(8)));
    const Fd end = end_of(folder.path(), stranger());
    ASSERT_TRUE(end);
    EXPECT_FALSE(has_ended(end));
  }
  EXPECT_FALSE(lives(folder.path(), stranger()));
  EXPECT_EQ(lifelines_in(folder.path()), 0U);
}

TEST(Lifeline, TellsTheEndOfAStrangerThatIsKilled) {
  const TestFolder folder;
  Holder holder(folder.path());
  EXPECT_TRUE(lives(folder.path(), stranger()));
  const Fd end = end_of(folder.path(), stranger());
  ASSERT_TRUE(end);
  EXPECT_FALSE(has_ended(end));
  holder.kill();
  EXPECT_TRUE(has_ended(end));
  EXPECT_FALSE(lives(folder.path(), stranger()));
}

TEST(Lifeline, WakesWhoWaitsForTheEndOfAStranger) {
  constexpr double kLong_s = 600;
  const TestFolder folder;
  Holder holder(folder.path());
  auto pool = Pool::open(folder.path());
  ASSERT_TRUE(pool) << pool.error().message;
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    holder.kill();
  });
  EXPECT_TRUE(pool->wait({stranger()}, kLong_s));
  killer.join();
  EXPECT_FALSE(lives(folder.path(), stranger()));
}

TEST(Lifeline, IsSweptOnceNobodyHoldsIt) {
  const TestFolder folder;
  const auto held = Lifeline::hold(folder.path(), stranger(1));
  ASSERT_TRUE(held);
  Holder holder(folder.path());
  sweep_lifelines(folder.path());
  EXPECT_EQ(lifelines_in(folder.path()), 2U);
  holder.kill();
  sweep_lifelines(folder.path());
  EXPECT_EQ(lifelines_in(folder.path()), 1U);
  EXPECT_TRUE(lives(folder.path(), stranger(1)));
}

TEST(Lifeline, IsNotSweptBeforeItIsHeld) {
  const TestFolder folder;
  fs::create_directory(folder.path() + "/lives");
  const std::string draft = folder.path() + "/lives/1.2.3.new";
  ASSERT_EQ(::mkfifo(draft.c_str(), 0600), 0);
  sweep_lifelines(folder.path());
  EXPECT_EQ(lifelines_in(folder.path()), 1U);
  const timespec long_ago[2]{{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, draft.c_str(), long_ago, 0), 0);
  sweep_lifelines(folder.path());
  EXPECT_EQ(lifelines_in(folder.path()), 0U);
}

TEST(Lifeline, ASymbolicLinkIsNone) {
  const TestFolder folder;
  const auto line = Lifeline::hold(folder.path(), stranger());
  ASSERT_TRUE(line);
  const auto entry = fs::directory_iterator(folder.path() + "/lives")->path();
  const fs::path other = folder.path() + "/elsewhere";
  fs::rename(entry, other);
  fs::create_symlink(other, entry);
  EXPECT_TRUE(lives(folder.path(), stranger())) << "a process that cannot be seen counts as alive";
  EXPECT_FALSE(end_of(folder.path(), stranger()));
}

TEST(Lifeline, AStrangerOfAnEarlierBootIsGone) {
  const TestFolder folder;
  const auto line = Lifeline::hold(folder.path(), stranger());
  ASSERT_TRUE(line);
  process::ProcessId earlier = stranger();
  earlier.boot_id = "00000000-0000-0000-0000-000000000000";
  EXPECT_FALSE(lives(folder.path(), earlier));
}

TEST(Lifeline, AKeeperWorksWhileItIsNeitherStoppedNorSilent) {
  const TestFolder folder;
  const process::ProcessId self = process::own_process_id();
  EXPECT_FALSE(is_working(folder.path(), self)) << "it holds no lifeline";
  const auto line = Lifeline::hold(folder.path());
  ASSERT_TRUE(line);
  EXPECT_TRUE(is_working(folder.path(), self));
  const fs::path entry = fs::directory_iterator(folder.path() + "/lives")->path();
  for (const int64_t away_s : {int64_t{-200}, int64_t{200}}) {  // silent for long, and the clock was set back
    const timespec then{::time(nullptr) + away_s, 0}, times[2]{then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, entry.c_str(), times, 0), 0);
    EXPECT_FALSE(is_working(folder.path(), self)) << away_s;
    beat(folder.path());
    EXPECT_TRUE(is_working(folder.path(), self)) << away_s;
  }
}

TEST(Lifeline, AKeeperThatIsStoppedDoesNotWork) {
  const TestFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd ready(ends[0]), tell(ends[1]);
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    const auto line = Lifeline::hold(folder.path());
    if (line) (void)!::write(tell.get(), "!", 1);
    for (;;) ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready.get(), &byte, 1), 1);
  const auto process = process::process_id(keeper);
  ASSERT_TRUE(process);
  EXPECT_TRUE(is_working(folder.path(), *process));
  ::kill(keeper, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(keeper, &status, WUNTRACED), keeper);
  EXPECT_FALSE(is_working(folder.path(), *process));
  EXPECT_TRUE(lives(folder.path(), *process));
  ::kill(keeper, SIGCONT);
  ASSERT_EQ(::waitpid(keeper, &status, WCONTINUED), keeper);
  EXPECT_TRUE(is_working(folder.path(), *process));
  ::kill(keeper, SIGKILL);
  ::waitpid(keeper, &status, 0);
  EXPECT_FALSE(is_working(folder.path(), *process));
}

TEST(Lifeline, WhoCanBeSeenNeedsNone) {
  const TestFolder folder;
  EXPECT_TRUE(lives(folder.path(), process::own_process_id()));
  EXPECT_TRUE(end_of(folder.path(), process::own_process_id()));
}

}  // namespace
}  // namespace remuda::pool
