#include "process/guarded_child.h"

#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/process_id.h"
#include "process/testing/in_child.h"
#include "process/tree.h"

namespace remuda::process {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kEnough = 20, kShort = 0.02;

void say(int socket, std::string_view text) { static_cast<void>(write_all(socket, text, "test")); }
void sleep_for_ever(int) {
  for (;;) ::pause();
}

TEST(GuardedChild, SpeaksInLines) {
  auto child = GuardedChild::start([](int socket) {
    say(socket, "one\ntw");
    char came = 0;
    if (::recv(socket, &came, 1, 0) == 1 && came == '!') say(socket, "o\n");
  });
  ASSERT_TRUE(child) << child.error().message;
  std::string line;
  EXPECT_EQ(child->receive(kEnough, line), GuardedChild::Received::line);
  EXPECT_EQ(line, "one");
  EXPECT_EQ(child->receive(kShort, line), GuardedChild::Received::nothing);
  EXPECT_TRUE(child->is_there());
  EXPECT_TRUE(child->send("!"));
  EXPECT_EQ(child->receive(kEnough, line), GuardedChild::Received::line);
  EXPECT_EQ(line, "two");
  EXPECT_EQ(child->receive(kEnough, line), GuardedChild::Received::end);
  EXPECT_FALSE(child->is_there());
}

TEST(GuardedChild, ThatHangsIsKilledAndLeavesNoZombie) {
  auto child = GuardedChild::start(sleep_for_ever);
  ASSERT_TRUE(child);
  std::string line;
  EXPECT_EQ(child->receive(kShort, line), GuardedChild::Received::nothing);
  while (!child->end()) {
  }
  EXPECT_EQ(child->fate(), "was killed");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // nobody is left
  EXPECT_TRUE(child->end());
}

TEST(GuardedChild, ReportsACrash) {
  auto child = GuardedChild::start([](int) { ::raise(SIGSEGV); });
  ASSERT_TRUE(child);
  std::string line;
  EXPECT_EQ(child->receive(kEnough, line), GuardedChild::Received::end);
  while (!child->end()) {
  }
  EXPECT_EQ(child->fate(), "crashed (signal 11, Segmentation fault)");
}

TEST(GuardedChild, ReportsItsExitStatus) {
  auto child = GuardedChild::start([](int) { ::_exit(3); });
  ASSERT_TRUE(child);
  std::string line;
  EXPECT_EQ(child->receive(kEnough, line), GuardedChild::Received::end);
  while (!child->end()) {
  }
  EXPECT_EQ(child->fate(), "ended with status 3");
}

TEST(GuardedChild, HoldsNothingOfItsParents) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd reading(ends[0]), writing(ends[1]);
  auto child = GuardedChild::start([fd = ends[1]](int socket) {
    say(socket, ::fcntl(fd, F_GETFD) < 0 && ::write(STDOUT_FILENO, "lost\n", 5) == 5 ? "closed\n" : "open\n");
    sleep_for_ever(socket);
  });
  ASSERT_TRUE(child);
  std::string line;
  ASSERT_EQ(child->receive(kEnough, line), GuardedChild::Received::line);
  EXPECT_EQ(line, "closed");
  writing.reset();
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0);  // no one else has the other end
}

TEST(GuardedChild, IsEndedWithItsObject) {
  Result<GuardedChild> child = GuardedChild::start(sleep_for_ever);
  ASSERT_TRUE(child);
  {
    const GuardedChild moved = std::move(*child);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(GuardedChild, HandsOverAllThatItSends) {
  const std::string text(1 << 20, 'x');
  auto child = GuardedChild::start([&](int socket) { say(socket, text + "\nend"); });
  ASSERT_TRUE(child);
  std::string all;
  EXPECT_EQ(child->receive_all(kEnough, all), GuardedChild::Received::end);
  EXPECT_EQ(all, text + "\nend");
}

TEST(GuardedChild, IsKilledWithWhatItStarted) {
  auto child = GuardedChild::start([](int socket) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) sleep_for_ever(socket);
    say(socket, std::to_string(grandchild) + "\n");
    sleep_for_ever(socket);
  });
  ASSERT_TRUE(child);
  std::string line;
  ASSERT_EQ(child->receive(kEnough, line), GuardedChild::Received::line);
  while (!child->end()) {
  }
  while (process_id(std::stoi(line))) ::usleep(1000);  // a hang would fail this test
}

TEST(GuardedChild, BelongsToNoJob) {
  auto child = GuardedChild::start(sleep_for_ever);
  ASSERT_TRUE(child);
  const pid_t pid = child->pid();
  EXPECT_THAT(guarded_children(), ElementsAre(pid));
  EXPECT_THAT(descendants(::getpid()), IsEmpty()) << "a job's processes are looked for among them";
  const auto other = in_child([](const Say&) { return std::to_string(guarded_children().size()); });
  EXPECT_EQ(other.said, "0") << "it is no child of a process that was forked";
  while (!child->end()) {
  }
  EXPECT_THAT(guarded_children(), IsEmpty());
}

TEST(GuardedChild, IsNotKilledByAProcessThatWasForkedWithIt) {
  auto child = GuardedChild::start([](int socket) {
    char came = 0;
    if (::recv(socket, &came, 1, 0) == 1) say(socket, "still here\n");
  });
  ASSERT_TRUE(child);
  const auto other = in_child([&](const Say&) { return child->end() ? "ended its copy" : "waits"; });
  EXPECT_EQ(other.said, "ended its copy");
  EXPECT_TRUE(child->send("?"));
  std::string line;
  EXPECT_EQ(child->receive(kEnough, line), GuardedChild::Received::line);
  EXPECT_EQ(line, "still here");
}

/// As in the keeper of a job, which reaps all its children.
TEST(GuardedChild, MayBeCollectedByItsProcess) {
  auto child = GuardedChild::start([](int) {});
  ASSERT_TRUE(child);
  std::string line;
  ASSERT_EQ(child->receive(kEnough, line), GuardedChild::Received::end);
  ASSERT_EQ(::waitpid(-1, nullptr, 0), child->pid());
  EXPECT_TRUE(child->end());
  EXPECT_EQ(child->fate(), "ended");
}

}  // namespace
}  // namespace remuda::process
