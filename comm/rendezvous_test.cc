#include "comm/rendezvous.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "comm/handshake.h"
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
  static std::vector<Result<void>> connect_all(std::vector<ConnectOptions> all) {
    std::vector<Result<void>> results(all.size());
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < all.size(); ++i)
      threads.emplace_back([&, i] { results[i] = connect_mesh(all[i]).map([](const Mesh&) {}); });
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

/// Each rank sends "rank, role" to each other one; checks that all of them arrive at the right rank.
void expect_joined(const std::vector<Mesh>& meshes) {
  struct Word {
    int from, to, role;
    bool operator==(const Word&) const = default;
  };
  const int size = static_cast<int>(meshes.size());
  const auto fd = [&](const Word& word) {
    const Mesh& mesh = meshes[word.from];
    return (word.role == 0 ? mesh.control : mesh.data.front())[word.to].get();
  };
  std::vector<Word> words;
  for (int from = 0; from < size; ++from)
    for (int to = 0; to < size; ++to)
      for (int role = 0; role < 2 && from != to; ++role) words.push_back({from, to, role});
  for (const Word& word : words)
    ASSERT_TRUE(send_all(fd(word), std::as_bytes(std::span(&word, 1)), deadline_after(10), "peer"));
  for (const Word& word : words) {
    Word got{};
    const Word reverse{word.to, word.from, word.role};
    ASSERT_TRUE(recv_all(fd(reverse), std::as_writable_bytes(std::span(&got, 1)), deadline_after(10), "peer"));
    EXPECT_EQ(got, word);
  }
}

TEST_F(RendezvousTest, EachPairOfRanksIsConnectedForControlAndForData) {
  for (const int size : {2, 4, 16}) {
    std::vector<Result<Mesh>> results(size);
    std::vector<std::jthread> threads;
    auto all = everyone(size, 60);
    for (int i = 0; i < size; ++i) threads.emplace_back([&, i] { results[i] = connect_mesh(all[i]); });
    threads.clear();
    std::vector<Mesh> meshes;
    for (auto& result : results) {
      ASSERT_TRUE(result) << result.error().message;
      meshes.push_back(std::move(*result));
    }
    for (int i = 0; i < size; ++i) {
      EXPECT_EQ(meshes[i].rank, i);
      EXPECT_EQ(meshes[i].size, size);
    }
    expect_joined(meshes);
    listener_ = *listen_on({"127.0.0.1", 0});
    port_ = local_endpoint(listener_.get()).port;
  }
}

TEST_F(RendezvousTest, StrangersDoNoHarm) {
  std::vector<Fd> strangers;
  strangers.push_back(stranger_says("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: someone\r\nAccept: */*\r\n" +
                                    std::string(100, ' ')));
  strangers.push_back(stranger_says("remuda\r\n"));
  strangers.push_back(stranger_says(""));
  strangers.push_back(stranger_says(std::string(5000, '\xff')));
  for (int i = 0; i < 30; ++i) strangers.push_back(stranger_says("half"));
  for (const auto& result : connect_all(everyone(3))) EXPECT_TRUE(result) << result.error().message;
}

TEST_F(RendezvousTest, WrongSecretIsToldToTheRankThatHasItAndNotedByRank0) {
  auto all = everyone(2, 2);
  all[1].secret = "guess";
  const auto results = connect_all(std::move(all));
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().kind, ErrorKind::usage);
  EXPECT_THAT(results[1].error().message, HasSubstr(fmt::format("rank 1 and 127.0.0.1:{} do not share", port_)));
  ASSERT_FALSE(results[0]);
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 1 of 2 did not come within 2 s (127.0.0.1:"));
}

TEST_F(RendezvousTest, MissingRanksAreNamed) {
  auto all = everyone(4, 2);
  all.erase(all.begin() + 3);
  all.erase(all.begin() + 1);
  const auto results = connect_all(std::move(all));
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(results[0].error().peer, 1);
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 1,3 of 4 did not come within 2 s"));
  EXPECT_FALSE(results[1]);
}

TEST_F(RendezvousTest, DuplicateRankIsNamedWithBothAddresses) {
  std::vector<ConnectOptions> all;
  for (const int rank : {0, 1, 1}) all.push_back(options(rank, 3));
  const auto results = connect_all(std::move(all));
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().kind, ErrorKind::usage);
  EXPECT_THAT(results[0].error().message, testing::ContainsRegex("rank 1 is there twice: at 127.*and at 127"));
  EXPECT_FALSE(results[1]);
  EXPECT_FALSE(results[2]);
}

TEST_F(RendezvousTest, OfTwoThatComeAtOnceTheFirstOneStaysWhereThatIsAskedFor) {
  auto leader = options(0, 2);
  leader.first_come = true;
  std::vector<ConnectOptions> all;
  all.push_back(std::move(leader));
  for (int i = 0; i < 8; ++i) all.push_back(options(1, 2, 2));
  const auto results = connect_all(std::move(all));
  EXPECT_TRUE(results[0]) << results[0].error().message;
  EXPECT_EQ(std::ranges::count_if(results, [](const auto& result) { return result.has_value(); }), 2);
}

TEST_F(RendezvousTest, DataOfAnEarlierMeetingTakesNobodysPlaceWhereTheFirstOneStays) {
  auto mine = options(0, 2);
  mine.first_come = true;
  Result<Mesh> led;
  std::jthread leader([&] { led = connect_mesh(mine); });
  const Fd late = *dial({"127.0.0.1", port_}, deadline_after(10));
  const Identity other{1, 2, "secret", {{"encryption", name_of(Encryption::beyond_loopback)}, {"streams", "1"}}};
  const auto welcome = authenticate(late.get(), other, LinkRole::data, "rank 0", deadline_after(10));
  ASSERT_FALSE(welcome);
  EXPECT_TRUE(is_there_twice(welcome.error()));
  auto second = options(1, 2);
  const auto followed = connect_mesh(second);
  leader.join();
  EXPECT_TRUE(led) << led.error().message;
  EXPECT_TRUE(followed) << followed.error().message;
}

TEST_F(RendezvousTest, ASecondRank0IsNotLetIn) {
  Result<Mesh> first;
  std::jthread leader([&first, mine = options(0, 2)]() mutable { first = connect_mesh(mine); });
  const Fd fd = *dial({"127.0.0.1", port_}, deadline_after(10));
  const Identity second{0, 2, "secret", {{"encryption", name_of(Encryption::beyond_loopback)}, {"streams", "1"}}};
  const auto welcome = authenticate(fd.get(), second, LinkRole::control, "rank 0", deadline_after(10));
  leader.join();
  ASSERT_FALSE(welcome);
  EXPECT_THAT(welcome.error().message, HasSubstr("rank 0 is there twice"));
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().message, testing::ContainsRegex("rank 0 is there twice: at 127.* and here"));
}

TEST_F(RendezvousTest, OtherWorldSizeIsNamedOnBothSides) {
  auto all = everyone(2);
  all[1].size = 3;
  const auto results = connect_all(std::move(all));
  ASSERT_FALSE(results[0]);
  EXPECT_THAT(results[0].error().message,
              testing::ContainsRegex("rank 1 at 127.*was started for a job of 3 ranks, rank 0 for 2"));
  ASSERT_FALSE(results[1]);
  EXPECT_THAT(results[1].error().message, HasSubstr("rank 1 was started for a job of 3 ranks"));
}

TEST_F(RendezvousTest, RanksOfOtherJobsAreToldOnBothSides) {
  auto all = everyone(2);
  all[0].terms = {{"run", "a"}, {"train.seed", "7"}};
  all[1].terms = {{"run", "a"}, {"train.seed", "8"}};
  const auto results = connect_all(std::move(all));
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().kind, ErrorKind::usage);
  EXPECT_THAT(results[0].error().message,
              testing::ContainsRegex("rank 0 and rank 1 at 127.*must have the same run, job and data: train.seed is 7 "
                                     "for rank 0 and 8 for rank 1"));
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().kind, ErrorKind::usage);
  EXPECT_THAT(results[1].error().message, HasSubstr("train.seed is 8 for rank 1 and 7 for rank 0"));
}

TEST_F(RendezvousTest, PortInUseIsNamed) {
  ConnectOptions second{.rank = 0, .size = 2, .master_port = port_, .secret = "secret"};
  const auto result = connect_mesh(second);
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
    early = connect_mesh(mine).map([](const Mesh&) {});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(connect_mesh(late));
  other.join();
  EXPECT_TRUE(early);
}

TEST_F(RendezvousTest, NobodyAtTheMasterAddressIsAnErrorThatNamesIt) {
  listener_.reset();
  auto mine = options(1, 2, 0.2);
  const auto result = connect_mesh(mine);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(result.error().peer, 0);
  EXPECT_THAT(result.error().message, HasSubstr(fmt::format("127.0.0.1:{}: Connection refused", port_)));
}

TEST_F(RendezvousTest, RefusesADescriptorThatDoesNotListen) {
  ConnectOptions odd{.rank = 0, .size = 2, .listener = Fd(::dup(0)), .secret = "secret"};
  const auto result = connect_mesh(odd);
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
  EXPECT_THAT(result.error().message, HasSubstr("rank 1 is set to use tcp, rank 0 to use any transport"));
}

TEST_F(RendezvousTest, RanksMustHaveAsManyStreams) {
  auto all = everyone(2);
  all[1].streams = 3;
  for (const auto& result : connect_all(std::move(all))) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::usage);
    EXPECT_THAT(result.error().message, HasSubstr("streams is"));
  }
}

TEST_F(RendezvousTest, AStreamBeyondTheTermsIsNotLetIn) {
  Result<Mesh> first;
  std::jthread leader([&first, mine = options(0, 2)]() mutable { first = connect_mesh(mine); });
  const Fd fd = *dial({"127.0.0.1", port_}, deadline_after(10));
  const Identity other{1, 2, "secret", {{"encryption", name_of(Encryption::beyond_loopback)}, {"streams", "1"}}};
  const auto welcome = authenticate(fd.get(), other, data_role(1), "rank 0", deadline_after(10));
  leader.join();
  EXPECT_FALSE(welcome);
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().message, testing::ContainsRegex("rank 1 at 127.* has more streams than its terms say"));
}

TEST(Connect, RefusesNoStreamsAndTooMany) {
  for (const int streams : {0, kMaxStreams + 1}) {
    const auto result = connect({.size = 2, .secret = "secret", .streams = streams});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, fmt::format("there are 1 to 16 streams between two ranks, not {}", streams));
  }
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
