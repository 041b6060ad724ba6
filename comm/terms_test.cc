#include "comm/terms.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "comm/testing/socket_pair.h"
#include "comm/wire.h"

namespace remuda::comm {
namespace {

using testing::HasSubstr;
using testing::Not;

const Terms kTerms{{"run", "17"}, {"train.seed", "7"}};

TEST(Terms, EveryPartOfThemIsInTheDigest) {
  EXPECT_EQ(digest_of(kTerms), digest_of(Terms(kTerms)));
  const std::vector<Terms> others{{},
                                  {{"run", "17"}},
                                  {{"run", "17"}, {"train.seed", "8"}},
                                  {{"run", "17"}, {"train.Seed", "7"}},
                                  {{"train.seed", "7"}, {"run", "17"}},
                                  {{"run", "1"}, {"7train.seed", "7"}},
                                  {{"run", "17\",\"train.seed"}, {"", "7"}}};
  for (const Terms& other : others) EXPECT_NE(digest_of(other), digest_of(kTerms));
}

TEST(Terms, DifferencesNameBothValuesAndNotWhatIsTheSame) {
  EXPECT_EQ(differences(1, {{"run", "17"}, {"train.seed", "8"}}, 0, kTerms),
            "train.seed is 8 for rank 1 and 7 for rank 0");
  EXPECT_EQ(differences(1, {{"run", ""}}, 0, kTerms),
            "run is empty for rank 1 and 17 for rank 0; train.seed is not given for rank 1 and 7 for rank 0");
}

TEST(Terms, OnlyTheFirstDifferencesAreShown) {
  Terms a, b;
  for (int i = 0; i < 10; ++i) {
    a.push_back({fmt::format("key{}", i), "a"});
    b.push_back({fmt::format("key{}", i), "b"});
  }
  const std::string text = differences(0, a, 1, b);
  EXPECT_THAT(text, HasSubstr("key2"));
  EXPECT_THAT(text, Not(HasSubstr("key3")));
  EXPECT_THAT(text, HasSubstr("; and 7 more"));
}

TEST(Terms, ForeignTextCannotReachTheTerminal) {
  const std::string text =
      differences(0, kTerms, 1, {{"\x1b[31m", std::string(1000, 'x') + "\x1b"}, {"run", "\n\x9b"}});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_LT(text.size(), 600u);
}

TEST(Terms, AreExchangedWhateverTheirSize) {
  SocketPair pair;
  const Terms large{{"key", std::string(900'000, 'x')}};
  Result<Terms> first;
  std::jthread other(
      [&] { first = exchange_terms(pair.first.get(), large, true, deadline_after(30), "the other end"); });
  const auto second = exchange_terms(pair.second.get(), kTerms, false, deadline_after(30), "the other end");
  other.join();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, kTerms);
  EXPECT_EQ(*second, large);
}

TEST(Terms, WhatIsNoTermsIsRefused) {
  for (const std::string_view text :
       {"{}", "[1]", "[[\"a\"]]", "[[\"a\",1]]", "[[\"a\",\"b\",\"c\"]]", "nothing", ""}) {
    SocketPair pair;
    const auto length = static_cast<uint32_t>(text.size());
    ASSERT_TRUE(send_all(pair.first.get(), std::as_bytes(std::span(&length, 1)), deadline_after(5), "test"));
    ASSERT_TRUE(send_all(pair.first.get(), std::as_bytes(std::span(text)), deadline_after(5), "test"));
    EXPECT_FALSE(exchange_terms(pair.second.get(), kTerms, false, deadline_after(5), "the other end")) << text;
  }
}

TEST(Terms, ALengthThatIsTooLargeIsRefusedBeforeAnythingIsRead) {
  SocketPair pair;
  const uint32_t length = 0xffffffff;
  ASSERT_TRUE(send_all(pair.first.get(), std::as_bytes(std::span(&length, 1)), deadline_after(5), "test"));
  const auto terms = exchange_terms(pair.second.get(), kTerms, false, deadline_after(5), "the other end");
  ASSERT_FALSE(terms);
  EXPECT_THAT(terms.error().message, HasSubstr("the other end sent too many terms"));
}

}  // namespace
}  // namespace remuda::comm
