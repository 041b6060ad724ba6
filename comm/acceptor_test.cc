#include "comm/acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>

#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;

constexpr double kLong_s = 60;      // by then a test has failed
constexpr double kForever_s = 1e6;  // a deadline that no test reaches

class AcceptorTest : public testing::Test {
 protected:
  AcceptorTest() : listener_(*listen_on({"127.0.0.1", 0})), port_(local_endpoint(listener_.get()).port) {}

  Acceptor acceptor(AcceptorLimits limits) { return {std::move(listener_), kRank0, limits}; }
  Fd connection() const { return *dial({"127.0.0.1", port_}, deadline_after(kLong_s)); }
  Fd stranger(std::string_view text) const {
    Fd fd = connection();
    EXPECT_TRUE(send_all(fd.get(), std::as_bytes(std::span(text)), deadline_after(kLong_s), "rank 0"));
    return fd;
  }
  std::vector<Fd> idle_connections(int count) const {
    std::vector<Fd> all;
    for (int i = 0; i < count; ++i) all.push_back(connection());
    return all;
  }
  /// Rank 1, in a thread of its own, over an existing connection.
  static std::jthread rank1(const Fd& fd, const Identity& self = kRank1) {
    return std::jthread([&fd, &self] {
      static_cast<void>(authenticate(fd.get(), self, LinkRole::control, "rank 0", deadline_after(kLong_s)));
    });
  }
  static void expect_rank1(Acceptor& acceptor) {
    const auto candidate = acceptor.next(deadline_after(kLong_s));
    ASSERT_TRUE(candidate && *candidate) << (candidate ? acceptor.last_refusal() : candidate.error().message);
    EXPECT_EQ((*candidate)->greeting().rank, 1u);
  }
  static bool is_closed(const Fd& fd) {
    std::byte byte;
    const ptrdiff_t got = recv_some(fd.get(), std::span(&byte, 1));
    return got < 0;
  }

  static inline const Identity kRank0{0, 2, "secret", {}}, kRank1{1, 2, "secret", {}};
  Fd listener_;
  int port_;
};

TEST_F(AcceptorTest, IdleConnectionsDoNotHoldUpARank) {
  auto acceptor = this->acceptor({.handshake_s = kForever_s, .pending = 8, .silence_s = 0.01});
  const auto idle = idle_connections(50);
  const Fd rank = connection();
  const std::jthread thread = rank1(rank);
  expect_rank1(acceptor);
}

TEST_F(AcceptorTest, AThousandIdleConnectionsDoNotHoldUpARank) {
  auto acceptor = this->acceptor({.handshake_s = kForever_s});
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2500) GTEST_SKIP() << "needs 2500 descriptors";
  const auto idle = idle_connections(1000);
  const Fd rank = connection();
  const std::jthread thread = rank1(rank);
  expect_rank1(acceptor);
  EXPECT_FALSE(is_closed(idle.front())) << "there was room for all";
}

TEST_F(AcceptorTest, OneThatSentItsHelloKeepsItsPlace) {
  auto acceptor = this->acceptor({.handshake_s = kForever_s, .pending = 2, .silence_s = 0});
  const auto hello = encode({.rank = 1, .size = 2});
  const Fd slow = stranger({reinterpret_cast<const char*>(hello.data()), hello.size()});
  EXPECT_FALSE(acceptor.next(deadline_after(0.05))->has_value()) << "its proof is missing";
  const auto idle = idle_connections(10);
  const Fd rank = connection();
  const std::jthread thread = rank1(rank);
  expect_rank1(acceptor);
  Greeting::Bytes challenge;
  EXPECT_TRUE(recv_all(slow.get(), challenge, deadline_after(kLong_s), "rank 0"));
  EXPECT_FALSE(is_closed(slow));
  EXPECT_TRUE(is_closed(idle.front()));
}

// The system refuses a further descriptor; the existing ones go to the ranks.
TEST_F(AcceptorTest, IdleConnectionsThatTakeAllDescriptorsDoNotHoldUpARank) {
  auto acceptor = this->acceptor({.handshake_s = kForever_s, .silence_s = 0.01});
  const auto idle = idle_connections(30);
  const Fd rank = connection();
  const std::jthread thread = rank1(rank);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit tight{static_cast<rlim_t>(rank.get()) + 5, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &tight);
  expect_rank1(acceptor);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(AcceptorTest, AStrangerIsDroppedAtItsFirstWrongByte) {
  auto acceptor = this->acceptor({.handshake_s = kForever_s});
  const Fd http = stranger("GET / HTTP"), nearly = stranger({"remuda\r\nX\0\0\0", 12}), half = stranger("remuda");
  EXPECT_FALSE(acceptor.next(deadline_after(0.2))->has_value());
  EXPECT_TRUE(is_closed(http));
  EXPECT_TRUE(is_closed(nearly));
  EXPECT_FALSE(is_closed(half));
}

TEST_F(AcceptorTest, AHandshakeThatIsNotFinishedInTimeIsDropped) {
  auto acceptor = this->acceptor({.handshake_s = 0.05});
  const Fd half = stranger("remuda");
  EXPECT_FALSE(acceptor.next(deadline_after(0.2))->has_value());
  EXPECT_TRUE(is_closed(half));
  EXPECT_THAT(acceptor.last_refusal(), HasSubstr("it did not finish the handshake within 0.05 s"));
}

// Who accepts has been away for longer than a handshake may take. What has come meanwhile counts, and the proof may
// take as long again.
TEST_F(AcceptorTest, AHelloThatHasWaitedIsAnswered) {
  constexpr double kHandshake_s = 0.3;
  auto acceptor = this->acceptor({.handshake_s = kHandshake_s});
  const Fd fd = connection();
  EXPECT_FALSE(acceptor.next(0)->has_value());
  const auto hello = encode({.rank = 1, .size = 2});
  ASSERT_TRUE(send_all(fd.get(), hello, deadline_after(kLong_s), "rank 0"));
  std::this_thread::sleep_for(std::chrono::duration<double>(1.5 * kHandshake_s));
  EXPECT_FALSE(acceptor.next(0)->has_value());
  Greeting::Bytes challenge;
  EXPECT_TRUE(recv_all(fd.get(), challenge, deadline_after(kLong_s), "rank 0")) << acceptor.last_refusal();
  EXPECT_FALSE(is_closed(fd)) << acceptor.last_refusal();
}

TEST_F(AcceptorTest, WhatItSaysOfAWrongSecretIsNotLostAmongStrangers) {
  auto acceptor = this->acceptor({});
  const Identity guesser{1, 2, "guess", {}};
  {
    const Fd fd = connection();
    std::jthread thread([&] {
      static_cast<void>(authenticate(fd.get(), guesser, LinkRole::control, "rank 0", deadline_after(kLong_s)));
      ::shutdown(fd.get(), SHUT_RDWR);
    });
    while (acceptor.last_refusal().empty()) EXPECT_FALSE(acceptor.next(deadline_after(0.05))->has_value());
  }
  EXPECT_THAT(acceptor.last_refusal(), HasSubstr("as a rank with another secret does"));
  const Fd http = stranger("GET / HTTP");
  EXPECT_FALSE(acceptor.next(deadline_after(0.1))->has_value());
  EXPECT_TRUE(is_closed(http));
  EXPECT_THAT(acceptor.last_refusal(), HasSubstr("as a rank with another secret does"));
}

TEST_F(AcceptorTest, AWrongProofIsRefused) {
  auto acceptor = this->acceptor({});
  const auto hello = encode({.rank = 1, .size = 2});
  const Fd fd = stranger({reinterpret_cast<const char*>(hello.data()), hello.size()});
  const auto proof = encode({.step = Greeting::Step::proof, .rank = 1, .size = 2});
  ASSERT_TRUE(send_all(fd.get(), proof, deadline_after(kLong_s), "rank 0"));
  EXPECT_FALSE(acceptor.next(deadline_after(0.2))->has_value());
  EXPECT_THAT(acceptor.last_refusal(), HasSubstr("does not know the job's secret (REMUDA_SECRET)"));
}

}  // namespace
}  // namespace remuda::comm
