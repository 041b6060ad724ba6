#include "quorum/message.h"

#include <gtest/gtest.h>

namespace remuda::quorum {
namespace {

Message full() {
  return {.generation = 2,
          .rank = 3,
          .lost = 1,
          .cause = "rank 3: rank 1 closed the connection",
          .done = true,
          .welcomes = true,
          .address = "10.0.0.4",
          .port = 40000,
          .heard_from = {0, 2},
          .promised = {3, 0},
          .accepted = {2, 1},
          .value = {{0, 2, 3}, "10.0.0.1", 40001},
          .decided = true};
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = to_text(full());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Message, IsReadAsItIsWritten) {
  EXPECT_EQ(parse_message(to_text(full())).value(), full());
  const Message bare{.generation = kHello};
  EXPECT_EQ(parse_message(to_text(bare)).value(), bare);
}

TEST(Message, ItsCauseIsOfBoundedLength) {
  Message message = full();
  message.cause.assign(1000, 'x');
  EXPECT_EQ(parse_message(to_text(message)).value().cause.size(), kLongestCause);
}

TEST(Message, WhatMakesNoSenseIsRefused) {
  for (const std::string& text :
       {changed("\"rank\":3", "\"rank\":1024"), changed("\"rank\":3", "\"rank\":-1"), changed("[0,2]", "[2,0]"),
        changed("[0,2]", "[0,0]"), changed("[0,2]", "7"), changed("[0,2,3]", "[]"), changed("[2,1]", "[0,0]"),
        changed("[2,1]", "[2]"), changed("[2,1]", "[2,1.5]"), changed("40000", "65536"), changed("true", "1"),
        changed("\"lost\":1,", ""), std::string("[]"), std::string("{}"), std::string("7"), std::string("no JSON")})
    EXPECT_FALSE(parse_message(text)) << text;
}

}  // namespace
}  // namespace remuda::quorum
