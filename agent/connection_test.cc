#include "agent/connection.h"

#include <gtest/gtest.h>
#include <string>
#include <sys/socket.h>

namespace remuda::agent {
namespace {

TEST(Connection, CountsWhatItHolds) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const Fd there(fds[1]);
  Connection connection(Fd(fds[0]), {}, 100);
  ASSERT_EQ(::send(there.get(), "\0\0\0\x9half", 8, 0), 8);
  ASSERT_TRUE(connection.read(200));
  EXPECT_EQ(connection.take_growth(), 8);
  EXPECT_EQ(connection.take_growth(), 0);
}

TEST(Connection, AHalfRequestAndAnUnreadAnswerHaveTheirTime) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const Fd there(fds[1]);
  Connection connection(Fd(fds[0]), {}, 100);
  EXPECT_FALSE(connection.is_over(1e9)) << "who is idle costs nothing";
  ASSERT_EQ(::send(there.get(), "\0\0\0\x9half", 8, 0), 8);
  ASSERT_TRUE(connection.read(200));
  EXPECT_FALSE(*connection.next());
  EXPECT_FALSE(connection.is_over(209));
  EXPECT_TRUE(connection.is_over(211));
}

TEST(Connection, AnAnswerThatNobodyReadsHasItsTime) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const Fd there(fds[1]);
  Connection connection(Fd(fds[0]), {}, 100);
  while (!connection.has_output()) connection.send({.id = "a", .result = Json(std::string(100'000, 'x'))}, 100);
  EXPECT_FALSE(connection.has_input());
  EXPECT_FALSE(connection.is_over(129));
  EXPECT_TRUE(connection.is_over(131));
}

TEST(Connection, TellsOfAChangeOnceUntilItIsAskedAgain) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  const Fd there(fds[1]);
  Connection connection(Fd(fds[0]), {}, 100);
  const auto got = [&] {
    char bytes[4096];
    return ::recv(there.get(), bytes, sizeof bytes, 0);
  };
  connection.watch(7);
  connection.tell(8, 100);
  EXPECT_EQ(got(), -1);
  connection.tell(7, 100);
  EXPECT_GT(got(), 0);
  connection.tell(7, 100);
  EXPECT_EQ(got(), -1);
  connection.watch(7);
  connection.tell(7, 100);
  EXPECT_GT(got(), 0);
}

}  // namespace
}  // namespace remuda::agent
