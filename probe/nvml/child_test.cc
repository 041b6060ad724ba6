#include "probe/nvml/child.h"

#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace remuda::probe::nvml {
namespace {

using ::testing::HasSubstr;

constexpr double kEnough = 20, kShort = 0.02;

void say(int socket, std::string_view text) { static_cast<void>(write_all(socket, text, "test")); }
void sleep_for_ever(int) {
  for (;;) ::pause();
}

TEST(Child, SpeaksInLines) {
  auto child = Child::start([](int socket) {
    say(socket, "one\ntw");
    char heard = 0;
    if (::recv(socket, &heard, 1, 0) == 1 && heard == '!') say(socket, "o\n");
  });
  ASSERT_TRUE(child) << child.error().message;
  std::string line;
  EXPECT_EQ(child->hear(kEnough, line), Child::Heard::line);
  EXPECT_EQ(line, "one");
  EXPECT_EQ(child->hear(kShort, line), Child::Heard::silence);
  EXPECT_TRUE(child->is_there());
  EXPECT_TRUE(child->tell("!"));
  EXPECT_EQ(child->hear(kEnough, line), Child::Heard::line);
  EXPECT_EQ(line, "two");
  EXPECT_EQ(child->hear(kEnough, line), Child::Heard::end);
  EXPECT_FALSE(child->is_there());
}

TEST(Child, ThatHangsIsKilledAndLeavesNoZombie) {
  auto child = Child::start(sleep_for_ever);
  ASSERT_TRUE(child);
  std::string line;
  EXPECT_EQ(child->hear(kShort, line), Child::Heard::silence);
  while (!child->end()) {
  }
  EXPECT_EQ(child->fate(), "was killed");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // nobody is left
  EXPECT_TRUE(child->end());
}

TEST(Child, ThatCrashesIsTold) {
  auto child = Child::start([](int) { ::raise(SIGSEGV); });
  ASSERT_TRUE(child);
  std::string line;
  EXPECT_EQ(child->hear(kEnough, line), Child::Heard::end);
  while (!child->end()) {
  }
  EXPECT_EQ(child->fate(), "crashed (signal 11, Segmentation fault)");
}

TEST(Child, ThatExitsIsTold) {
  auto child = Child::start([](int) { ::_exit(3); });
  ASSERT_TRUE(child);
  std::string line;
  EXPECT_EQ(child->hear(kEnough, line), Child::Heard::end);
  while (!child->end()) {
  }
  EXPECT_EQ(child->fate(), "ended with status 3");
}

TEST(Child, HoldsNothingOfItsParents) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd reading(ends[0]), writing(ends[1]);
  auto child = Child::start([fd = ends[1]](int socket) {
    say(socket, ::fcntl(fd, F_GETFD) < 0 && ::write(STDOUT_FILENO, "lost\n", 5) == 5 ? "closed\n" : "open\n");
    sleep_for_ever(socket);
  });
  ASSERT_TRUE(child);
  std::string line;
  ASSERT_EQ(child->hear(kEnough, line), Child::Heard::line);
  EXPECT_EQ(line, "closed");
  writing.reset();
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0);  // no one else has the other end
}

TEST(Child, IsEndedWithItsObject) {
  Result<Child> child = Child::start(sleep_for_ever);
  ASSERT_TRUE(child);
  {
    const Child moved = std::move(*child);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace remuda::probe::nvml
