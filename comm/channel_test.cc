#include "comm/channel.h"

#include <future>
#include <gmock/gmock.h>
#include <vector>

#include "comm/testing/transport_suite.h"

namespace remuda::comm {
namespace {

using ::testing::HasSubstr;

/// Three ranks, with a channel of the last and the first.
class ChannelSuite : public TransportSuite {
 protected:
  void run(const std::function<void(Communicator&, Channel*)>& body) const {
    TransportSuite::run([&](Communicator& communicator) {
      const auto channel = Channel::open(communicator, 2, 0, 7).value();
      EXPECT_EQ(channel == nullptr, communicator.rank() == 1);
      body(communicator, channel.get());
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, ChannelSuite, ::testing::ValuesIn(setups({3})), setup_name);

std::vector<std::byte> bytes_of(size_t count, int start) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(start + static_cast<int>(i % 251));
  return bytes;
}

TEST_P(ChannelSuite, WhatOneSendsTheOtherReceivesEitherWay) {
  run([](Communicator& communicator, Channel* channel) {
    if (!channel) return;
    for (const size_t count : {size_t{0}, size_t{1}, size_t{1001}, size_t{200003}})
      for (const int sender : {2, 0}) {
        const std::vector<std::byte> sent = bytes_of(count, sender);
        std::vector<std::byte> got(count);
        const auto outcome = communicator.rank() == sender ? channel->send(sent, 1) : channel->receive(got, 1);
        ASSERT_TRUE(outcome) << outcome.error().message;
        EXPECT_EQ(communicator.rank() == sender ? sent : got, sent) << count;
      }
  });
}

// One waits for its channel in the middle of a call of all three.
TEST_P(ChannelSuite, ItWaitsForNoCallOfTheOthers) {
  run([](Communicator& communicator, Channel* channel) {
    std::vector<std::byte> word(8);
    std::future<Result<void>> meets;
    if (communicator.rank() != 2) meets = std::async(std::launch::async, [&] { return communicator.barrier(3); });
    if (channel) {
      const auto outcome = communicator.rank() == 2 ? channel->send(word, 1) : channel->receive(word, 1);
      EXPECT_TRUE(outcome) << outcome.error().message;
    }
    EXPECT_TRUE(meets.valid() ? meets.get() : communicator.barrier(3));
  });
}

TEST_P(ChannelSuite, ErrorsNameBothRanksByTheirNumbersInTheJob) {
  run([](Communicator&, Channel* channel) {
    std::vector<std::byte> word(8);
    if (!channel) return;
    const auto outcome = channel->send(word, 5);
    ASSERT_FALSE(outcome) << "both send";
    EXPECT_THAT(outcome.error().message, HasSubstr("rank 0 is at broadcast #1 (label 5, 8 bytes from rank 0)"));
    EXPECT_THAT(outcome.error().message, HasSubstr("rank 2 is at broadcast #1 (label 5, 8 bytes from rank 2)"));
  });
}

TEST_P(ChannelSuite, AWaitHasAnEnd) {
  run([](Communicator& communicator, Channel* channel) {
    std::vector<std::byte> word(8);
    if (communicator.rank() == 0) {
      channel->set_timeout(0.2);
      const auto outcome = channel->receive(word, 5);
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().kind, ErrorKind::lost_peer);
      EXPECT_THAT(outcome.error().message, HasSubstr("rank 2"));
    }
    EXPECT_TRUE(communicator.barrier(3));
  });
}

}  // namespace
}  // namespace remuda::comm
