#include "comm/handshake.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <thread>

#include "base/file.h"
#include "comm/testing/socket_pair.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;
using Step = Greeting::Step;

const Identity kRank0{0, 2, "secret", {{"train.seed", "7"}}};
const Identity kRank1{1, 2, "secret", {{"train.seed", "7"}}};
const char* const kAddress = "127.0.0.1:5";

/// A man in the middle: it sees each message and may change it.
using Wire = std::function<void(Step, Greeting::Bytes&)>;
const Wire kPlainWire = [](Step, Greeting::Bytes&) {};

/// The acceptor's side of a whole handshake, behind `wire`.
Result<Greeting> accept_one(int fd, const Identity& self, Greeting::Verdict verdict, const Wire& wire,
                            Protection& protection) {
  AcceptorHandshake handshake(self);
  Greeting::Bytes bytes;
  REMUDA_TRY(recv_all(fd, bytes, deadline_after(30), "connector"));
  wire(Step::hello, bytes);
  REMUDA_ASSIGN(auto challenge, handshake.challenge(bytes));
  wire(Step::challenge, challenge);
  REMUDA_TRY(send_all(fd, challenge, deadline_after(30), "connector"));
  REMUDA_TRY(recv_all(fd, bytes, deadline_after(30), "connector"));
  wire(Step::proof, bytes);
  REMUDA_TRY(handshake.check_proof(bytes));
  auto answer = handshake.verdict(verdict);
  wire(Step::verdict, answer);
  REMUDA_TRY(send_all(fd, answer, deadline_after(30), "connector"));
  protection = handshake.protection();
  if (verdict == Greeting::Verdict::other_terms)
    return tl::unexpected(other_terms(fd, self, true, handshake.connector().rank, kAddress));
  return handshake.connector();
}

struct BothEnds {
  Result<Protection> connector;
  Result<Greeting> acceptor;
  Protection acceptors;  // once it has welcomed
  bool both() const { return connector && acceptor; }
};

BothEnds shake(const Identity& connector, const Identity& acceptor,
               Greeting::Verdict verdict = Greeting::Verdict::welcome, const Wire& wire = kPlainWire) {
  SocketPair pair;
  BothEnds ends;
  std::jthread other([&] {
    ends.connector = authenticate(pair.first.get(), connector, LinkRole::data, kAddress, deadline_after(30));
    pair.first.reset();
  });
  ends.acceptor = accept_one(pair.second.get(), acceptor, verdict, wire, ends.acceptors);
  pair.second.reset();
  other.join();
  return ends;
}

TEST(Handshake, BothEndsThatKnowTheSecretAreConnected) {
  const BothEnds ends = shake(kRank1, kRank0);
  EXPECT_TRUE(ends.connector);
  ASSERT_TRUE(ends.acceptor);
  EXPECT_EQ(ends.acceptor->rank, 1u);
  EXPECT_EQ(ends.acceptor->role, LinkRole::data);
}

TEST(Handshake, BothEndsHaveOneKeyOfThisConnectionAlone) {
  const BothEnds first = shake(kRank1, kRank0), second = shake(kRank1, kRank0);
  ASSERT_TRUE(first.both() && second.both());
  EXPECT_EQ(first.connector->key, first.acceptors.key);
  EXPECT_EQ(second.connector->key, second.acceptors.key);
  EXPECT_NE(first.connector->key, second.connector->key) << "the nonces are others";
}

TEST(Handshake, TheKeyIsOfTheSecretAndOfEachNonce) {
  const auto key = [](const std::string& secret, unsigned char a, unsigned char b) {
    Greeting hello{.size = 2}, challenge{.step = Step::challenge, .size = 2};
    hello.nonce.fill(std::byte{a});
    challenge.nonce.fill(std::byte{b});
    return protection_of(secret, hello, challenge).key;
  };
  EXPECT_EQ(key("secret", 1, 2), key("secret", 1, 2));
  EXPECT_NE(key("secret", 1, 2), key("other", 1, 2));
  EXPECT_NE(key("secret", 1, 2), key("secret", 3, 2));
  EXPECT_NE(key("secret", 1, 2), key("secret", 1, 3));
}

TEST(Handshake, WhatFollowsIsEncryptedIfEitherEndWantsIt) {
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      Identity rank0 = kRank0, rank1 = kRank1;
      if (first) rank0.encryption = Encryption::always;
      if (second) rank1.encryption = Encryption::always;
      const BothEnds ends = shake(rank1, rank0);
      ASSERT_TRUE(ends.both());
      EXPECT_EQ(ends.connector->encrypted, first || second);
      EXPECT_EQ(ends.acceptors.encrypted, first || second);
    }
}

TEST(Handshake, ConnectorWithAnotherSecretIsTold) {
  for (const char* guess : {"guess", "secre", "secret2", "Secret"}) {
    const BothEnds ends = shake({1, 2, guess, kRank1.terms}, kRank0);
    ASSERT_FALSE(ends.connector);
    EXPECT_EQ(ends.connector.error().kind, ErrorKind::usage);
    EXPECT_THAT(ends.connector.error().message, HasSubstr("rank 1 and 127.0.0.1:5 do not share one secret"));
    EXPECT_FALSE(ends.acceptor);
  }
}

TEST(Handshake, OtherWorldSizeNamesBothRanks) {
  const BothEnds ends = shake({1, 3, "secret", kRank1.terms}, kRank0, Greeting::Verdict::other_size);
  ASSERT_FALSE(ends.connector);
  EXPECT_THAT(ends.connector.error().message,
              HasSubstr("rank 1 was started for a job of 3 ranks, rank 0 at 127.0.0.1:5 for 2"));
}

TEST(Handshake, ConnectorRefusesAWelcomeOfAnotherWorldSize) {
  EXPECT_FALSE(shake({1, 3, "secret", kRank1.terms}, kRank0).connector);
}

TEST(Handshake, DuplicateIsTold) {
  const BothEnds ends = shake(kRank1, kRank0, Greeting::Verdict::duplicate);
  ASSERT_FALSE(ends.connector);
  EXPECT_THAT(ends.connector.error().message, HasSubstr("rank 1 is there twice"));
  EXPECT_TRUE(is_there_twice(ends.connector.error()));
  EXPECT_FALSE(is_there_twice({ErrorKind::usage, "rank 1 must have the same secret", -1}));
}

TEST(Handshake, BothEndsOfDifferentJobsSayWhatDiffers) {
  const BothEnds ends = shake({1, 2, "secret", {{"train.seed", "8"}}}, kRank0, Greeting::Verdict::other_terms);
  ASSERT_FALSE(ends.connector);
  ASSERT_FALSE(ends.acceptor);
  EXPECT_EQ(ends.connector.error().kind, ErrorKind::usage);
  EXPECT_EQ(ends.acceptor.error().kind, ErrorKind::usage);
  EXPECT_THAT(ends.connector.error().message, HasSubstr("rank 1 and rank 0 at 127.0.0.1:5"));
  EXPECT_THAT(ends.connector.error().message, HasSubstr("train.seed is 8 for rank 1 and 7 for rank 0"));
  EXPECT_THAT(ends.acceptor.error().message, HasSubstr("train.seed is 7 for rank 0 and 8 for rank 1"));
}

TEST(Handshake, ConnectorRefusesAWelcomeToAnotherJob) {
  const BothEnds ends = shake({1, 2, "secret", {{"train.seed", "8"}}}, kRank0);
  ASSERT_FALSE(ends.connector);
  EXPECT_THAT(ends.connector.error().message, HasSubstr("what differs is not known"));
}

TEST(Handshake, AnyByteThatIsChangedOnTheWayEndsIt) {
  for (const Step step : {Step::hello, Step::challenge, Step::proof, Step::verdict})
    for (size_t at = 0; at < Greeting::kBytes; ++at) {
      const bool is_free = step == Step::hello && at >= Greeting::kBytes - 32;  // a hello has no MAC yet
      if (is_free) continue;
      const BothEnds ends = shake(kRank1, kRank0, Greeting::Verdict::welcome, [&](Step seen, Greeting::Bytes& bytes) {
        if (seen == step) bytes[at] ^= std::byte{1};
      });
      EXPECT_FALSE(ends.both()) << "step " << static_cast<int>(step) << ", byte " << at;
      const bool the_connector_sees_it = step == Step::challenge || step == Step::verdict;
      EXPECT_FALSE(the_connector_sees_it && ends.connector) << "byte " << at;
      EXPECT_FALSE(step == Step::proof && ends.acceptor) << "byte " << at;
    }
}

TEST(Handshake, AMessageOutOfOrderIsNamed) {
  const BothEnds ends = shake(kRank1, kRank0, Greeting::Verdict::welcome, [](Step step, Greeting::Bytes& bytes) {
    if (step == Step::challenge) bytes[12] = static_cast<std::byte>(Step::verdict);
  });
  ASSERT_FALSE(ends.connector);
  EXPECT_THAT(ends.connector.error().message, HasSubstr("127.0.0.1:5 breaks the order of the handshake"));
}

/// A successful handshake, as recorded by a listener who does not know the secret.
struct Recording {
  Recording() {
    const BothEnds ends = shake(kRank1, kRank0, Greeting::Verdict::welcome,
                                [this](Step step, Greeting::Bytes& bytes) { at(step) = bytes; });
    EXPECT_TRUE(ends.both());
  }
  Greeting::Bytes& at(Step step) { return messages[static_cast<size_t>(step)]; }
  std::array<Greeting::Bytes, 4> messages{};
};

TEST(Handshake, AConnectorPlayedBackIsRefused) {
  Recording recording;
  AcceptorHandshake handshake(kRank0);
  ASSERT_TRUE(handshake.challenge(recording.at(Step::hello)));
  EXPECT_FALSE(handshake.check_proof(recording.at(Step::proof)));
}

TEST(Handshake, AnAcceptorPlayedBackIsRefused) {
  Recording recording;
  const BothEnds ends = shake(kRank1, kRank0, Greeting::Verdict::welcome, [&](Step step, Greeting::Bytes& bytes) {
    if (step == Step::challenge || step == Step::verdict) bytes = recording.at(step);
  });
  ASSERT_FALSE(ends.connector);
  EXPECT_THAT(ends.connector.error().message, HasSubstr("do not share one secret"));
}

TEST(Handshake, AVerdictOfAnotherConnectionIsRefused) {
  Recording recording;
  const BothEnds ends = shake(kRank1, kRank0, Greeting::Verdict::welcome, [&](Step step, Greeting::Bytes& bytes) {
    if (step == Step::verdict) bytes = recording.at(step);
  });
  ASSERT_FALSE(ends.connector);
  EXPECT_THAT(ends.connector.error().message, HasSubstr("did not sign"));
}

Greeting hello() { return {.step = Step::hello, .rank = 1, .size = 2, .terms = digest_of(kRank1.terms)}; }

TEST(Handshake, AcceptorRefusesAProofWithoutTheSecret) {
  AcceptorHandshake handshake(kRank0);
  const auto challenge = handshake.challenge(encode(hello()));
  ASSERT_TRUE(challenge);
  Greeting proof = hello();
  proof.step = Step::proof;
  EXPECT_FALSE(handshake.check_proof(encode(proof)));
  EXPECT_FALSE(handshake.check_proof(*challenge)) << "its own challenge, played back";
  EXPECT_FALSE(handshake.check_proof(handshake.verdict(Greeting::Verdict::welcome))) << "its own verdict";
  for (auto reflected : {*challenge, handshake.verdict(Greeting::Verdict::welcome)}) {
    reflected[12] = static_cast<std::byte>(Step::proof);
    EXPECT_FALSE(handshake.check_proof(reflected)) << "its own message, called a proof";
  }
}

TEST(Handshake, AcceptorBeginsWithAHelloOnly) {
  for (const Step step : {Step::challenge, Step::proof, Step::verdict}) {
    Greeting greeting = hello();
    greeting.step = step;
    EXPECT_FALSE(AcceptorHandshake(kRank0).challenge(encode(greeting)));
  }
}

/// One signature is enough to try all secrets that people think of.
TEST(Handshake, NothingIsSignedBeyondLoopbackWithASecretThatCanBeGuessed) {
  const auto refused = AcceptorHandshake(kRank0, {"10.0.0.1", 29500}).challenge(encode(hello()));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("rank 0 and 10.0.0.1:29500 are not on one host's loopback"));
  Identity strong = kRank0;
  strong.secret = std::string(32, 'a');
  EXPECT_TRUE(AcceptorHandshake(strong, {"10.0.0.1", 29500}).challenge(encode(hello())));
}

TEST(Handshake, NothingIsSentBeyondLoopbackWithASecretThatCanBeGuessed) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in far{.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(0xc0000201)}, .sin_zero = {}};
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&far), sizeof far) != 0)
    GTEST_SKIP() << "this machine has no network";
  const auto refused = authenticate(socket.get(), kRank1, LinkRole::control, "far", deadline_after(0));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("rank 1 and 192.0.2.1:9 are not on one host's loopback"));
}

TEST(ParseGreeting, TakesBackWhatEncodeWrote) {
  Greeting greeting{Step::verdict, LinkRole::data, 3, 4, Greeting::Verdict::duplicate};
  greeting.nonce[5] = std::byte{7};
  greeting.terms[6] = std::byte{8};
  greeting.mac[31] = std::byte{9};
  greeting.encrypted = true;
  const auto parsed = parse_greeting(encode(greeting));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(encode(*parsed), encode(greeting));
  EXPECT_EQ(parsed->step, greeting.step);
  EXPECT_EQ(parsed->role, greeting.role);
  EXPECT_EQ(parsed->rank, greeting.rank);
  EXPECT_EQ(parsed->size, greeting.size);
  EXPECT_EQ(parsed->verdict, greeting.verdict);
  EXPECT_EQ(parsed->nonce, greeting.nonce);
  EXPECT_EQ(parsed->terms, greeting.terms);
  EXPECT_EQ(parsed->mac, greeting.mac);
  EXPECT_TRUE(parsed->encrypted);
}

TEST(ParseGreeting, NumbersAreLittleEndianAtTheirPlaces) {
  const auto bytes = encode({Step::proof, LinkRole::data, 0x0102, 0x0304});
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), 32);
  EXPECT_EQ(text, std::string_view("remuda\r\n\3\0\0\0\2\0\0\0\1\0\0\0\2\1\0\0\4\3\0\0\0\0\0\0", 32));
}

TEST(ParseGreeting, RefusesWhatIsForeign) {
  const std::string_view http = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_FALSE(parse_greeting(std::as_bytes(std::span(http))));
  EXPECT_FALSE(parse_greeting({}));
  const auto bytes = encode(hello());
  EXPECT_FALSE(parse_greeting(std::span(bytes).first(bytes.size() - 1)));
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.emplace_back();
  EXPECT_FALSE(parse_greeting(longer));
}

TEST(ParseGreeting, NamesAnotherVersion) {
  auto bytes = encode(hello());
  bytes[8] = std::byte{1};
  const auto parsed = parse_greeting(bytes);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("speaks version 1"));
}

TEST(ParseGreeting, ForeignBytesAreSeenAtOnce) {
  const auto bytes = encode(hello());
  for (size_t length = 0; length <= bytes.size(); ++length)
    EXPECT_TRUE(check_beginning(std::span(bytes).first(length))) << length;
  for (size_t at = 0; at < 12; ++at) {
    auto other = bytes;
    other[at] ^= std::byte{1};
    EXPECT_FALSE(check_beginning(std::span(other).first(at < 8 ? at + 1 : 12))) << at;
  }
}

TEST(ParseGreeting, RefusesNumbersOutOfRange) {
  struct Case {
    size_t place;
    uint32_t largest;
  };
  const Greeting greeting{.rank = kMaxRanks - 1, .size = kMaxRanks};
  for (const Case& field : {Case{12, 3}, {16, kMaxStreams}, {20, kMaxRanks - 1}, {24, kMaxRanks}, {28, 3}}) {
    for (const bool too_large : {false, true}) {
      auto bytes = encode(greeting);
      const uint32_t value = field.largest + (too_large ? 1 : 0);
      for (int i = 0; i < 4; ++i) bytes[field.place + i] = static_cast<std::byte>(value >> (8 * i));
      EXPECT_EQ(parse_greeting(bytes).has_value(), !too_large) << "field at " << field.place;
    }
    auto bytes = encode(greeting);
    bytes[field.place + 3] = std::byte{0xff};
    EXPECT_FALSE(parse_greeting(bytes)) << "field at " << field.place;
  }
  EXPECT_FALSE(parse_greeting(encode({.rank = 0, .size = 0})));
  EXPECT_FALSE(parse_greeting(encode({.rank = 5, .size = 5})));
}

TEST(ParseGreeting, TakesOrRefusesRandomNumbersAsWritten) {
  std::mt19937 random(1);
  int taken = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    auto bytes = encode(hello());
    for (size_t at = 12; at < bytes.size(); ++at) bytes[at] = static_cast<std::byte>(random());
    for (size_t field = 12; field < 32; field += 4)  // small, so that some are right
      for (size_t i = 0; i < 4; ++i) bytes[field + i] = i == 0 ? static_cast<std::byte>(random() % 6) : std::byte{0};
    const auto parsed = parse_greeting(bytes);
    ++(parsed ? taken : refused);
    if (!parsed) continue;
    EXPECT_EQ(encode(*parsed), bytes);
    EXPECT_LT(parsed->rank, parsed->size);
    EXPECT_LE(parsed->verdict, Greeting::Verdict::other_terms);
  }
  EXPECT_GT(taken, 50);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace remuda::comm
