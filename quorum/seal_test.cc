#include "quorum/seal.h"

#include <gtest/gtest.h>

namespace remuda::quorum {
namespace {

const std::string kPassword(32, 's');

TEST(Seal, WhoKnowsTheKeyReadsWhatAnotherHasWritten) {
  const Seal::Salt salt = Seal::make_salt();
  const Seal one(kPassword, salt), other(kPassword, salt);
  for (const std::string& text : {std::string("a text"), std::string(), std::string(5000, 'x')}) {
    const std::string closed = one.close(text);
    EXPECT_EQ(other.open(closed), text);
    EXPECT_NE(closed, one.close(text)) << "a nonce of its own";
    EXPECT_TRUE(text.empty() || closed.find(text) == std::string::npos);
  }
}

TEST(Seal, AnotherSecretOrRunReadsNothing) {
  const Seal::Salt salt = Seal::make_salt();
  const std::string closed = Seal(kPassword, salt).close("a text");
  EXPECT_FALSE(Seal(std::string(32, 't'), salt).open(closed));
  EXPECT_FALSE(Seal(kPassword, Seal::make_salt()).open(closed));
}

TEST(Seal, WhatWasChangedIsNoText) {
  const Seal seal(kPassword, Seal::make_salt());
  const std::string closed = seal.close("a text");
  for (size_t at = 0; at < closed.size(); ++at) {
    std::string changed = closed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(seal.open(changed)) << at;
    EXPECT_FALSE(seal.open(closed.substr(0, at))) << at;
  }
}

}  // namespace
}  // namespace remuda::quorum
