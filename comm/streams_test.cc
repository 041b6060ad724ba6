// What several streams add to an exchange; that the calls of all transports go over them is in the suites.
#include "comm/streams.h"

#include <algorithm>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <pthread.h>
#include <sys/resource.h>
#include <thread>

#include "comm/failure_report.h"
#include "comm/testing/socket_pair.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;

/// Rank 0 of two, of which the test plays the other.
class StreamsTest : public testing::Test {
 protected:
  static constexpr size_t kStripeBytes = 128;

  StreamsTest() {
    std::vector<Link> control(2);
    SocketPair liveness;
    control[1] = std::move(liveness.first);
    other_control_ = std::move(liveness.second);
    std::vector<std::vector<Link>> links;
    for (Fd& other : others_) {
      SocketPair data;
      links.emplace_back(2)[1] = std::move(data.first);
      other = std::move(data.second);
    }
    peers_.emplace(0, std::move(control));
    streams_.emplace(std::move(links), kStripeBytes, *peers_);
  }
  /// Each rank has bytes for the other; here, `mine` of 1, and so many of the other's are awaited.
  Result<void> exchange(size_t bytes, double timeout_s = 30) {
    mine_.assign(bytes, std::byte{1});
    theirs_.assign(bytes, std::byte{0});
    return streams_->run(call_, ranks_, bytes, deadline_after(timeout_s), [&](Stripe& stripe) {
      stripe.exchange.flow(1).finished.add(stripe.of(std::span<const std::byte>(mine_)));
      stripe.exchange.flow(1).in.add(stripe.of(std::span(theirs_)));
    });
  }
  /// One that does not wait for its deadline.
  Result<void> exchange_that_ends(size_t bytes) {
    auto rank0 = std::async(std::launch::async, [&] { return exchange(bytes, 60); });
    EXPECT_EQ(rank0.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    return rank0.get();
  }
  void other_says(size_t stream, std::span<const std::byte> bytes) {
    ASSERT_TRUE(send_all(others_[stream].get(), bytes, deadline_after(10), "rank 0"));
  }
  /// All that the other rank has for this one, over all streams.
  void other_says_all(const std::vector<std::byte>& bytes) {
    const Parts parts = even_parts(3, bytes.size(), 1);
    for (int stream = 0; stream < 3; ++stream) {
      other_calls(size_t(stream), call_);
      other_says(size_t(stream), part_of(std::span(bytes), parts.of(stream)));
    }
  }
  void other_calls(size_t stream, const Call& call) { other_says(stream, std::as_bytes(std::span(&call, 1))); }

  const Call call_{.kind = Call::Kind::all_gather, .sequence = 5, .bytes = 100};
  const std::vector<int> ranks_{0, 1};
  std::vector<std::byte> mine_, theirs_;
  std::optional<Peers> peers_;
  std::optional<Streams> streams_;
  Fd others_[3], other_control_;
};

TEST_F(StreamsTest, CutACallIntoStripesOfWholeCacheLines) {
  std::vector<std::byte> sent(1000);
  std::ranges::fill(sent, std::byte{2});
  size_t at = 0;
  for (size_t stream = 0; stream < 3; ++stream) {
    const size_t end = stream == 2 ? sent.size() : std::vector<size_t>{320, 704}[stream];
    other_calls(stream, call_);
    other_says(stream, std::span(sent).subspan(at, end - at));
    at = end;
  }
  const auto result = exchange(sent.size());
  EXPECT_TRUE(result) << result.error().message;
  EXPECT_EQ(theirs_, sent);
  EXPECT_EQ(streams_->sent_bytes(), 3 * sizeof(Call) + sent.size());
}

TEST_F(StreamsTest, ASmallCallGoesOverTheFirst) {
  other_calls(0, call_);
  other_says(0, std::vector<std::byte>(2 * kStripeBytes - 1));
  EXPECT_TRUE(exchange(2 * kStripeBytes - 1));
  std::byte more{};
  EXPECT_EQ(recv_some(others_[1].get(), std::span(&more, 1)), 0) << "nothing was sent";
}

TEST_F(StreamsTest, AnotherCallOnOneEndsAllWithItsError) {
  Call other = call_;
  other.label = 9;
  other_calls(1, other);
  const auto result = exchange_that_ends(1000);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("rank 1 is at all_gather #5 (label 9"));
}

TEST_F(StreamsTest, OneThatIsCutEndsAll) {
  other_calls(0, call_);
  others_[2].reset();
  other_control_.reset();
  const auto result = exchange_that_ends(1000);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(result.error().peer, 1);
}

TEST_F(StreamsTest, SilenceOnOneEndsAtTheDeadline) {
  for (const size_t stream : {0, 2}) {
    other_calls(stream, call_);
    other_says(stream, std::vector<std::byte>(stream == 0 ? 320 : 296));
  }
  const auto result = exchange(1000, 0.02);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("rank 1 did not answer in time"));
}

// Who reads a report first is chance. The stream that has to act on it here can neither send nor is to receive.
TEST_F(StreamsTest, AReportThatAnotherThreadReadsEndsTheStreamThatWaits) {
  constexpr size_t kBytes = 3 << 20;
  auto rank0 = std::async(std::launch::async, [&] { return exchange_that_ends(kBytes); });
  other_says_all(std::vector<std::byte>(kBytes));
  std::vector<std::byte> got(sizeof(Call) + kBytes / 3);
  for (const size_t stream : {0, 1}) ASSERT_TRUE(recv_all(others_[stream].get(), got, deadline_after(10), "rank 0"));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const FailureReport report = report_of({ErrorKind::failed, "rank 1 has no memory"}, 1, call_.sequence);
  ASSERT_TRUE(send_all(other_control_.get(), std::as_bytes(std::span(&report, 1)), deadline_after(10), "rank 0"));
  while (!peers_->gone(1)) EXPECT_TRUE(peers_->check(call_.sequence));
  const auto result = rank0.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "rank 1 has no memory");
}

TEST_F(StreamsTest, AllAreHungUp) {
  streams_->hang_up();
  std::byte more{};
  for (const Fd& other : others_) EXPECT_EQ(recv_some(other.get(), std::span(&more, 1)), -1);
}

TEST_F(StreamsTest, ARankAloneHasOneAndStripesOfAnySize) {
  streams_.emplace(std::vector<std::vector<Link>>(1), 0, *peers_);
  EXPECT_TRUE(streams_->run(call_, std::vector{0}, 1000, deadline_after(10), [](Stripe&) {}));
  EXPECT_EQ(streams_->sent_bytes(), 0u);
}

TEST_F(StreamsTest, WhatGetsNoThreadGoesOneAfterTheOther) {
  other_says_all(std::vector<std::byte>(1000, std::byte{2}));
  pthread_attr_t before, vast;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ::pthread_attr_init(&vast);
  ASSERT_EQ(::pthread_attr_setstacksize(&vast, size_t{1} << 50), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&vast), 0);
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  const auto result = exchange(1000);
  ::pthread_setattr_default_np(&before);
  EXPECT_TRUE(result) << result.error().message;
  EXPECT_EQ(theirs_, std::vector<std::byte>(1000, std::byte{2}));
}

TEST_F(StreamsTest, ARankWithoutADescriptorForThemSaysSo) {
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  streams_.emplace(std::vector<std::vector<Link>>(2), kStripeBytes, *peers_);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const auto result = exchange(1000);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::failed);
  EXPECT_THAT(result.error().message, HasSubstr("rank 0 has no descriptor left"));
}

}  // namespace
}  // namespace remuda::comm
