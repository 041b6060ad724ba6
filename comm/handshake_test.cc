#include "comm/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/socket.h>
#include <thread>

#include "base/file.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;

const Identity kRank0{0, 2, "secret"};
const Identity kRank1{1, 2, "secret"};

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    connector.reset(fds[0]);
    acceptor.reset(fds[1]);
  }
  Fd connector, acceptor;
};

// The acceptor's side of a whole handshake.
Result<Greeting> receive_visitor(int fd, const Identity& self, Greeting::Verdict verdict) {
  Reception reception(self);
  Greeting::Bytes bytes;
  REMUDA_TRY(recv_all(fd, bytes, deadline_after(5), "visitor"));
  REMUDA_ASSIGN(const auto challenge, reception.answer(bytes));
  REMUDA_TRY(send_all(fd, challenge, deadline_after(5), "visitor"));
  REMUDA_TRY(recv_all(fd, bytes, deadline_after(5), "visitor"));
  REMUDA_TRY(reception.check(bytes));
  REMUDA_TRY(send_all(fd, reception.verdict(verdict), deadline_after(5), "visitor"));
  return reception.visitor();
}

struct Outcome {
  Result<void> connector;
  Result<Greeting> acceptor;
};

Outcome shake(const Identity& connector, const Identity& acceptor,
              Greeting::Verdict verdict = Greeting::Verdict::welcome) {
  Pair pair;
  Outcome outcome;
  std::jthread other([&] {
    outcome.connector = introduce(pair.connector.get(), connector, LinkRole::data, "127.0.0.1:5", deadline_after(5));
    pair.connector.reset();
  });
  outcome.acceptor = receive_visitor(pair.acceptor.get(), acceptor, verdict);
  pair.acceptor.reset();
  return outcome;
}

TEST(Handshake, BothSidesWhoKnowTheSecretMeet) {
  const Outcome outcome = shake(kRank1, kRank0);
  EXPECT_TRUE(outcome.connector);
  ASSERT_TRUE(outcome.acceptor);
  EXPECT_EQ(outcome.acceptor->rank, 1u);
  EXPECT_EQ(outcome.acceptor->role, LinkRole::data);
}

TEST(Handshake, ConnectorWithAnotherSecretIsTold) {
  const Outcome outcome = shake({1, 2, "guess"}, kRank0);
  ASSERT_FALSE(outcome.connector);
  EXPECT_EQ(outcome.connector.error().kind, ErrorKind::usage);
  EXPECT_THAT(outcome.connector.error().message, HasSubstr("rank 1 and 127.0.0.1:5 do not share one secret"));
  EXPECT_FALSE(outcome.acceptor);
}

TEST(Handshake, OtherWorldSizeNamesBothRanks) {
  const Outcome outcome = shake({1, 3, "secret"}, kRank0, Greeting::Verdict::other_size);
  ASSERT_FALSE(outcome.connector);
  EXPECT_THAT(outcome.connector.error().message,
              HasSubstr("rank 1 was started for a job of 3 ranks, rank 0 at 127.0.0.1:5 for 2"));
}

TEST(Handshake, DuplicateIsTold) {
  const Outcome outcome = shake(kRank1, kRank0, Greeting::Verdict::duplicate);
  ASSERT_FALSE(outcome.connector);
  EXPECT_THAT(outcome.connector.error().message, HasSubstr("rank 1 is there twice"));
}

Greeting::Bytes hello_bytes() { return encode({Greeting::Step::hello, LinkRole::control, 1, 2}); }

TEST(Handshake, AcceptorRefusesAProofWithoutTheSecret) {
  Reception reception(kRank0);
  const auto challenge = reception.answer(hello_bytes());
  ASSERT_TRUE(challenge);
  EXPECT_FALSE(reception.check(encode({Greeting::Step::proof, LinkRole::control, 1, 2})));
  EXPECT_FALSE(reception.check(*challenge)) << "its own challenge, played back";
}

TEST(Handshake, AProofIsGoodForOneConnectionOnly) {
  Reception first(kRank0), second(kRank0);
  const auto a = first.answer(hello_bytes()), b = second.answer(hello_bytes());
  ASSERT_TRUE(a && b);
  EXPECT_NE(parse_greeting(*a)->nonce, parse_greeting(*b)->nonce);
  EXPECT_FALSE(second.check(first.verdict(Greeting::Verdict::welcome)));
}

TEST(ParseGreeting, TakesBackWhatEncodeWrote) {
  Greeting greeting{Greeting::Step::verdict, LinkRole::data, 3, 4, Greeting::Verdict::duplicate};
  greeting.nonce[5] = std::byte{7};
  greeting.mac[31] = std::byte{9};
  const auto parsed = parse_greeting(encode(greeting));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(encode(*parsed), encode(greeting));
}

TEST(ParseGreeting, RefusesWhatIsForeign) {
  const std::string_view http = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_FALSE(parse_greeting(std::as_bytes(std::span(http))));
  EXPECT_FALSE(parse_greeting({}));
  const auto bytes = hello_bytes();
  EXPECT_FALSE(parse_greeting(std::span(bytes).first(95)));
}

TEST(ParseGreeting, NamesAnotherVersion) {
  auto bytes = hello_bytes();
  bytes[8] = std::byte{2};
  const auto parsed = parse_greeting(bytes);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("speaks version 2"));
}

TEST(ParseGreeting, RefusesNumbersOutOfRange) {
  for (const size_t field : {12, 16, 20, 24, 28}) {
    auto bytes = hello_bytes();
    bytes[field + 3] = std::byte{0xff};
    EXPECT_FALSE(parse_greeting(bytes)) << "field at " << field;
  }
}

TEST(ParseGreeting, RefusesRandomBytes) {
  std::mt19937 random(1);
  Greeting::Bytes bytes;
  for (int round = 0; round < 1000; ++round) {
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(parse_greeting(bytes));
  }
}

}  // namespace
}  // namespace remuda::comm
