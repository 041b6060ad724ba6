#include "comm/tls.h"

#include <algorithm>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <random>
#include <thread>

#include "comm/link.h"
#include "comm/testing/socket_pair.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;
using Ends = std::pair<Result<std::unique_ptr<Tls>>, Result<std::unique_ptr<Tls>>>;

Tls::Key key_of(unsigned char byte) {
  Tls::Key key;
  key.fill(std::byte{byte});
  return key;
}

class TlsTest : public testing::Test {
 protected:
  Ends connect(const Tls::Key& connector, const Tls::Key& acceptor, uint64_t renew_bytes = Tls::kRenewBytes) {
    auto other = std::async(std::launch::async, [&] {
      return Tls::connect(pair_.second.get(), Tls::End::acceptor, acceptor, deadline_after(30), "rank 1", renew_bytes);
    });
    auto mine =
        Tls::connect(pair_.first.get(), Tls::End::connector, connector, deadline_after(30), "rank 0", renew_bytes);
    if (!mine) pair_.first.reset();
    return {std::move(mine), other.get()};
  }
  SocketPair pair_;
};

std::vector<std::byte> random_bytes(size_t count) {
  std::mt19937 random(5);
  std::vector<std::byte> bytes(count);
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

/// Both directions at once, in pieces of every size; what each end received.
std::pair<std::vector<std::byte>, std::vector<std::byte>> swap(Tls& a, Tls& b, std::span<const std::byte> bytes) {
  std::mt19937 random(7);
  std::vector<std::byte> at_a, at_b, room(100000);
  size_t from_a = 0, from_b = 0;
  const auto step = [&](Tls& end, size_t& sent, std::vector<std::byte>& got) {
    const ptrdiff_t gone = end.send_some(bytes.subspan(sent));
    EXPECT_GE(gone, 0) << end.trouble();
    if (gone > 0) sent += static_cast<size_t>(gone);
    const ptrdiff_t more = end.recv_some(std::span(room).first(1 + random() % room.size()));
    EXPECT_GE(more, 0) << end.trouble();
    if (more > 0) got.insert(got.end(), room.begin(), room.begin() + more);
  };
  while ((at_a.size() < bytes.size() || at_b.size() < bytes.size()) && !testing::Test::HasFailure()) {
    step(a, from_a, at_a);
    step(b, from_b, at_b);
  }
  return {at_a, at_b};
}

TEST_F(TlsTest, CarriesBytesInBothDirections) {
  const auto [a, b] = connect(key_of(1), key_of(1));
  ASSERT_TRUE(a && b);
  const auto bytes = random_bytes(1500000);
  const auto [at_a, at_b] = swap(**a, **b, bytes);
  EXPECT_EQ(at_a, bytes);
  EXPECT_EQ(at_b, bytes);
}

TEST_F(TlsTest, RenewsItsKeysUnderWay) {
  const auto [a, b] = connect(key_of(1), key_of(1), 10000);
  ASSERT_TRUE(a && b);
  const auto bytes = random_bytes(10000);
  for (int message = 0; message < 5; ++message) {
    (*a)->begin_message();
    (*b)->begin_message();
    EXPECT_EQ((*a)->renewals(), message);
    const auto [at_a, at_b] = swap(**a, **b, bytes);
    EXPECT_EQ(at_a, bytes);
    EXPECT_EQ(at_b, bytes);
  }
}

TEST_F(TlsTest, AnotherKeyIsRefusedAtBothEnds) {
  const auto [a, b] = connect(key_of(1), key_of(2));
  ASSERT_FALSE(a);
  ASSERT_FALSE(b);
  EXPECT_THAT(b.error().message, HasSubstr("rank 1 did not agree on encryption: "));
}

TEST_F(TlsTest, AnEndThatSpeaksPlainlyIsRefused) {
  std::vector<std::byte> words(500, std::byte{'a'});
  ASSERT_TRUE(send_all(pair_.second.get(), words, deadline_after(10), "rank 1"));
  const auto a = Tls::connect(pair_.first.get(), Tls::End::connector, key_of(1), deadline_after(10), "rank 0");
  ASSERT_FALSE(a);
  EXPECT_THAT(a.error().message, HasSubstr("rank 0 did not agree on encryption: "));
}

TEST_F(TlsTest, SilenceEndsAtTheDeadlineAndAnEndThatLeavesAtOnce) {
  const auto silent = Tls::connect(pair_.first.get(), Tls::End::connector, key_of(1), deadline_after(0.02), "rank 0");
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().kind, ErrorKind::lost_peer);
  EXPECT_THAT(silent.error().message, HasSubstr("rank 0 did not answer in time while"));
  pair_.first.reset();
  const auto left = Tls::connect(pair_.second.get(), Tls::End::acceptor, key_of(1), deadline_after(10), "rank 1");
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().kind, ErrorKind::lost_peer);
  EXPECT_THAT(left.error().message, HasSubstr("rank 1 closed the connection while"));
}

TEST_F(TlsTest, NothingOfWhatIsSentCanBeRead) {
  const auto [a, b] = connect(key_of(1), key_of(1));
  ASSERT_TRUE(a && b);
  const std::string secret = "weights that cost a million";
  ASSERT_GT((*a)->send_some(std::as_bytes(std::span(secret))), 0);
  std::string seen(1000, ' ');
  ASSERT_TRUE(wait_ready(pair_.second.get(), POLLIN, deadline_after(10)));
  const ptrdiff_t got = recv_some(pair_.second.get(), std::as_writable_bytes(std::span(seen)));
  ASSERT_GT(got, static_cast<ptrdiff_t>(secret.size()));
  EXPECT_EQ(seen.find(secret), std::string::npos);
}

/// What an end has sent, taken off the wire; and put on it again, for the other end.
std::vector<std::byte> take_record(const Fd& receiver) {
  std::vector<std::byte> record(5000);
  EXPECT_TRUE(wait_ready(receiver.get(), POLLIN, deadline_after(10)));
  record.resize(static_cast<size_t>(std::max<ptrdiff_t>(0, recv_some(receiver.get(), record))));
  return record;
}
void put(const Fd& sender, std::span<const std::byte> record) {
  EXPECT_TRUE(send_all(sender.get(), record, deadline_after(10), "the other end"));
}

TEST_F(TlsTest, AChangedBitIsTrouble) {
  const auto [a, b] = connect(key_of(1), key_of(1));
  ASSERT_TRUE(a && b);
  const auto bytes = random_bytes(1000);
  std::vector<std::byte> room(1000);
  ASSERT_EQ((*a)->send_some(bytes), 1000);
  put(pair_.first, take_record(pair_.second));
  EXPECT_EQ((*b)->recv_some(room), 1000) << "a record that was held up is as good as any";
  ASSERT_EQ((*a)->send_some(bytes), 1000);
  auto record = take_record(pair_.second);
  record.at(500) ^= std::byte{1};
  put(pair_.first, record);
  EXPECT_EQ((*b)->recv_some(room), -1);
  EXPECT_THAT((*b)->trouble(), HasSubstr("bad record mac"));
}

TEST_F(TlsTest, ARecordThatComesTwiceIsTrouble) {
  const auto [a, b] = connect(key_of(1), key_of(1));
  ASSERT_TRUE(a && b);
  std::vector<std::byte> room(1000);
  ASSERT_EQ((*a)->send_some(random_bytes(1000)), 1000);
  const auto record = take_record(pair_.second);
  put(pair_.first, record);
  EXPECT_EQ((*b)->recv_some(room), 1000);
  put(pair_.first, record);
  EXPECT_EQ((*b)->recv_some(room), -1);
}

TEST_F(TlsTest, ARecordThatIsSentBackIsTrouble) {
  const auto [a, b] = connect(key_of(1), key_of(1));
  ASSERT_TRUE(a && b);
  ASSERT_EQ((*a)->send_some(random_bytes(1000)), 1000);
  put(pair_.second, take_record(pair_.second));
  std::vector<std::byte> room(1000);
  EXPECT_EQ((*a)->recv_some(room), -1) << "the two directions have keys of their own";
}

}  // namespace
}  // namespace remuda::comm
