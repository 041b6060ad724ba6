#include "comm/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <thread>
#include <vector>

#include "comm/testing/socket_pair.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;

TEST(Wire, AllBytesArriveInOrderThroughFullBuffers) {
  SocketPair pair;
  std::vector<std::byte> sent(8 << 20), received(sent.size());
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  std::jthread other([&] { EXPECT_TRUE(send_all(pair.first.get(), sent, deadline_after(60), "reader")); });
  EXPECT_TRUE(recv_all(pair.second.get(), received, deadline_after(60), "writer"));
  EXPECT_EQ(received, sent);
}

TEST(Wire, SilenceAndFullBuffersEndAtTheDeadline) {
  SocketPair pair;
  std::vector<std::byte> bytes(8 << 20);
  for (const bool sends : {false, true}) {
    const auto moved = sends ? send_all(pair.first.get(), bytes, deadline_after(0.02), "rank 7")
                             : recv_all(pair.first.get(), bytes, deadline_after(0.02), "rank 7");
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().kind, ErrorKind::lost_peer);
    EXPECT_THAT(moved.error().message, HasSubstr("rank 7 did not answer in time"));
  }
}

TEST(Wire, AConnectionThatEndsIsNamed) {
  SocketPair pair;
  pair.second.reset();
  std::vector<std::byte> bytes(10);
  for (const auto& moved : {send_all(pair.first.get(), bytes, deadline_after(60), "rank 7"),
                            recv_all(pair.first.get(), bytes, deadline_after(60), "rank 7")}) {
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().kind, ErrorKind::lost_peer);
    EXPECT_THAT(moved.error().message, HasSubstr("rank 7 closed the connection"));
  }
}

TEST(Wire, PollWaitsUntilTheDeadlineAndNotLess) {
  EXPECT_EQ(poll_ms(deadline_after(-5)), 0);
  EXPECT_EQ(poll_ms(deadline_after(1e9)), 60000);
  EXPECT_EQ(poll_ms(deadline_after(1e9), 7), 7);
  EXPECT_GE(poll_ms(deadline_after(0.0005)), 0);
  const double deadline_s = deadline_after(0.03);
  SocketPair pair;
  EXPECT_FALSE(wait_ready(pair.first.get(), POLLIN, deadline_s));
  EXPECT_GE(deadline_after(0), deadline_s);
}

TEST(Wire, AddressesOfVersion6HaveBrackets) {
  EXPECT_EQ((Endpoint{"127.0.0.1", 80}.text()), "127.0.0.1:80");
  EXPECT_EQ((Endpoint{"::1", 80}.text()), "[::1]:80");
}

TEST(Wire, AnAddressThatDoesNotExistIsNamed) {
  const auto fd = dial({"no-such-host.invalid", 80}, deadline_after(60));
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().kind, ErrorKind::usage);
  EXPECT_THAT(fd.error().message, HasSubstr("cannot find the address 'no-such-host.invalid'"));
}

TEST(Wire, AListenerNobodyIsWaitingAtGivesNothing) {
  const Fd listener = *listen_on({"127.0.0.1", 0});
  EXPECT_FALSE(accept_waiting(listener.get()));
  const Fd dialled = *dial(local_endpoint(listener.get()), deadline_after(60));
  ASSERT_TRUE(wait_ready(listener.get(), POLLIN, deadline_after(60)));
  const Fd accepted = accept_waiting(listener.get());
  ASSERT_TRUE(accepted);
  EXPECT_EQ(remote_endpoint(accepted.get()).text(), local_endpoint(dialled.get()).text());
}

}  // namespace
}  // namespace remuda::comm
