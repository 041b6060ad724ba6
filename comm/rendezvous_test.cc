#include "comm/rendezvous.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;

class RendezvousTest : public testing::Test {
 protected:
  RendezvousTest() : listener_(*listen_on({"127.0.0.1", 0})), port_(local_endpoint(listener_.get()).port) {}

  ConnectOptions options(int rank, int size, double connect_timeout_s = 10) {
    return {.rank = rank,
            .size = size,
            .master_port = port_,
            .listener = rank == 0 ? std::move(listener_) : Fd(),
            .secret = "secret",
            .connect_timeout_s = connect_timeout_s};
  }
  // All ranks at once; the result of each.
  static std::vector<Result<void>> meet_all(std::vector<ConnectOptions> all) {
    std::vector<Result<void>> results(all.size());
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < all.size(); ++i)
      threads.emplace_back([&, i] { results[i] = meet(all[i]).map([](const Mesh&) {}); });
    threads.clear();
    return results;
  }
  std::vector<ConnectOptions> everyone(int size, double connect_timeout_s = 10) {
    std::vector<ConnectOptions> all;
    for (int rank = 0; rank < size; ++rank) all.push_back(options(rank, size, connect_timeout_s));
    return all;
  }
  Fd stranger_says(std::string_view text) {
    Fd fd = *dial({"127.0.0.1", port_}, deadline_after(5));
    EXPECT_TRUE(send_all(fd.get(), std::as_bytes(std::span(text)), deadline_after(5), "rank 0"));
    return fd;
  }

  Fd listener_;
  int port_;
};

TEST_F(RendezvousTest, EachPairOfRanksIsConnected) {
  auto all = everyone(4);
  for (const auto& result : meet_all(std::move(all))) EXPECT_TRUE(result) << result.error().message;
}

TEST_F(RendezvousTest, StrangersDoNoHarm) {
  std::vector<Fd> strangers;
  strangers.push_back(stranger_says("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: someone\r\nAccept: */*\r\n" +
                                    std::string(100, ' ')));
  strangers.push_back(stranger_says("remuda\r\n"));
  strangers.push_back(stranger_says(""));
  strangers.push_back(stranger_says(std::string(5000, '\xff')));
  for (int i = 0; i < 30; ++i) strangers.push_back(stranger_says("half"));
  for (const auto& result : meet_all(everyone(3))) EXPECT_TRUE(result) << result.error().message;
}

TEST_F(RendezvousTest, WrongSecretIsToldToTheRankThatHasItAndNotedByRank0) {
  auto all = everyone(2, 0.3);
  all[1].secret = "guess";
  const auto results = meet_all(std::move(all));
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().kind, ErrorKind::usage);
  EXPECT_THAT(results[1].error().message, HasSubstr(fmt::format("rank 1 and 127.0.0.1:{} do not share", port_)));
  ASSERT_FALSE(results[0]);
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 1 of 2 did not come within 0.3 s (127.0.0.1:"));
}

TEST_F(RendezvousTest, MissingRanksAreNamed) {
  auto all = everyone(4, 0.4);
  all.erase(all.begin() + 3);
  all.erase(all.begin() + 1);
  const auto results = meet_all(std::move(all));
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(results[0].error().peer, 1);
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 1,3 of 4 did not come within 0.4 s"));
  EXPECT_FALSE(results[1]);
}

TEST_F(RendezvousTest, DuplicateRankIsNamedWithBothAddresses) {
  std::vector<ConnectOptions> all;
  for (const int rank : {0, 1, 1}) all.push_back(options(rank, 3));
  const auto results = meet_all(std::move(all));
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().kind, ErrorKind::usage);
  EXPECT_THAT(results[0].error().message, testing::ContainsRegex("rank 1 is there twice: at 127.*and at 127"));
  EXPECT_FALSE(results[1]);
  EXPECT_FALSE(results[2]);
}

TEST_F(RendezvousTest, OtherWorldSizeIsNamedOnBothSides) {
  auto all = everyone(2);
  all[1].size = 3;
  const auto results = meet_all(std::move(all));
  ASSERT_FALSE(results[0]);
  EXPECT_THAT(results[0].error().message,
              testing::ContainsRegex("rank 1 at 127.*was started for a job of 3 ranks, rank 0 for 2"));
  ASSERT_FALSE(results[1]);
  EXPECT_THAT(results[1].error().message, HasSubstr("rank 1 was started for a job of 3 ranks"));
}

TEST_F(RendezvousTest, PortInUseIsNamed) {
  ConnectOptions second{.rank = 0, .size = 2, .master_port = port_, .secret = "secret"};
  const auto result = meet(second);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::usage);
  EXPECT_THAT(result.error().message,
              HasSubstr(fmt::format("cannot listen on 127.0.0.1:{}: Address already in use", port_)));
}

TEST_F(RendezvousTest, RanksMayComeBeforeRank0) {
  ConnectOptions late{.rank = 0, .size = 2, .master_port = port_, .secret = "secret"};
  listener_.reset();
  Result<void> early;
  std::jthread other([&] {
    auto mine = options(1, 2);
    early = meet(mine).map([](const Mesh&) {});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(meet(late));
  other.join();
  EXPECT_TRUE(early);
}

TEST_F(RendezvousTest, NobodyAtTheMasterAddressIsAnErrorThatNamesIt) {
  listener_.reset();
  auto mine = options(1, 2, 0.2);
  const auto result = meet(mine);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(result.error().peer, 0);
  EXPECT_THAT(result.error().message, HasSubstr(fmt::format("127.0.0.1:{}: Connection refused", port_)));
}

TEST_F(RendezvousTest, RefusesADescriptorThatDoesNotListen) {
  ConnectOptions odd{.rank = 0, .size = 2, .listener = Fd(::dup(0)), .secret = "secret"};
  const auto result = meet(odd);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("is not a listening socket"));
}

TEST_F(RendezvousTest, RanksMustAskForTheSameTransport) {
  std::jthread leader([mine = options(0, 2)]() mutable { static_cast<void>(connect(std::move(mine))); });
  auto other = options(1, 2);
  other.transport = ConnectOptions::Transport::tcp;
  const auto result = connect(std::move(other));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::usage);
  EXPECT_THAT(result.error().message, HasSubstr("rank 1 was told to use tcp, rank 0 to use any transport"));
}

TEST(Connect, RefusesAnEmptySecret) {
  const auto result = connect({.rank = 0, .size = 2});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::usage);
  EXPECT_THAT(result.error().message, HasSubstr("REMUDA_SECRET"));
}

TEST(Connect, RefusesARankOutsideTheJob) {
  const auto result = connect({.rank = 2, .size = 2, .secret = "secret"});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("rank 2 is not one of a job of 2 ranks"));
}

TEST(Connect, OneRankNeedsNeitherSecretNorSocket) {
  const auto alone = connect({});
  ASSERT_TRUE(alone);
  EXPECT_TRUE((*alone)->barrier(0));
}

}  // namespace
}  // namespace remuda::comm
