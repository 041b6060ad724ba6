// One exchange by itself: what the suites over all transports do not see.
#include "comm/exchange.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

#include "comm/testing/socket_pair.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;

/// Rank 0 of two, of which the test plays the other.
class ExchangeTest : public testing::Test {
 protected:
  ExchangeTest() {
    std::vector<Link> control(2);
    SocketPair data, liveness;
    links_.resize(2);
    links_[1] = std::move(data.first);
    control[1] = std::move(liveness.first);
    other_ = std::move(data.second);
    other_control_ = std::move(liveness.second);
    peers_.emplace(0, std::move(control));
  }
  Exchange begin() { return Exchange(call_, ranks_, links_, *peers_); }
  void other_says(const void* data, size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    ASSERT_TRUE(send_all(other_.get(), {from, bytes}, deadline_after(10), "rank 0"));
  }

  const Call call_{.kind = Call::Kind::all_gather, .sequence = 5, .bytes = 100};
  const std::vector<int> ranks_{0, 1};
  std::vector<Link> links_;
  std::optional<Peers> peers_;
  Fd other_, other_control_;
};

TEST_F(ExchangeTest, TakesNoByteOfDataBehindAnotherCall) {
  std::vector<std::byte> room(100, std::byte{7});
  Exchange exchange = begin();
  exchange.flow(1).in.add(room);
  Call other = call_;
  other.label = 9;
  const std::vector<std::byte> data(100);
  other_says(&other, sizeof other);
  other_says(data.data(), data.size());
  const auto result = exchange.run(deadline_after(10));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("rank 0 is at all_gather #5"));
  EXPECT_THAT(result.error().message, HasSubstr("rank 1 is at all_gather #5 (label 9"));
  EXPECT_EQ(room, std::vector<std::byte>(100, std::byte{7}));
}

TEST_F(ExchangeTest, ADescriptionThatComesInBytesIsAwaited) {
  std::jthread slow([&] {
    for (size_t i = 0; i < sizeof call_; ++i) other_says(reinterpret_cast<const std::byte*>(&call_) + i, 1);
  });
  Exchange exchange = begin();
  EXPECT_TRUE(exchange.run(deadline_after(10)));
  EXPECT_EQ(exchange.sent_bytes(), sizeof(Call));
}

TEST_F(ExchangeTest, DataThatEndsTooEarlyIsALostRank) {
  std::vector<std::byte> room(100);
  Exchange exchange = begin();
  exchange.flow(1).in.add(room);
  other_says(&call_, sizeof call_);
  other_says(room.data(), 99);
  other_.reset();
  other_control_.reset();
  const auto result = exchange.run(deadline_after(10));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(result.error().peer, 1);
}

TEST_F(ExchangeTest, SilenceEndsAtTheDeadline) {
  Exchange exchange = begin();
  const auto result = exchange.run(deadline_after(0.02));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().peer, 1);
  EXPECT_THAT(result.error().message, HasSubstr("rank 1 did not answer in time"));
}

TEST_F(ExchangeTest, WhatIsAddedUpLeavesWhileTheRestIsStillToCome) {
  std::vector<float> own(1 << 20, 1.0f);
  const std::vector<float> theirs(own.size(), 2.0f);
  Exchange exchange = begin();
  PartSum sum;
  sum.begin(0, 2, Element::float32, std::as_writable_bytes(std::span(own)));
  exchange.flow(1).finished.add(std::as_bytes(std::span(own)));
  exchange.add_up(sum);
  std::jthread rank0([&] { EXPECT_TRUE(exchange.run(deadline_after(30))); });
  const size_t half = own.size() * sizeof(float) / 2;
  other_says(&call_, sizeof call_);
  other_says(theirs.data(), half);
  std::vector<std::byte> back(sizeof(Call) + half);
  EXPECT_TRUE(recv_all(other_.get(), back, deadline_after(10), "rank 0")) << "the sum of the first half";
  float first = 0;
  std::memcpy(&first, &back[sizeof(Call)], sizeof first);
  EXPECT_EQ(first, 3.0f);
  std::jthread reader(
      [&] { EXPECT_TRUE(recv_all(other_.get(), std::span(back).first(half), deadline_after(10), "rank 0")); });
  other_says(reinterpret_cast<const std::byte*>(theirs.data()) + half, half);
}

}  // namespace
}  // namespace remuda::comm
