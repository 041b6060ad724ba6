#include "comm/encryption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::comm {
namespace {

using testing::HasSubstr;

TEST(Encryption, LoopbackIsKnownInEveryForm) {
  for (const char* address : {"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", ""})
    EXPECT_TRUE(is_loopback({address, 1})) << address;
  for (const char* address : {"10.0.0.1", "128.0.0.1", "1.127.0.1", "fe80::1", "::ffff:10.0.0.1", "::2"})
    EXPECT_FALSE(is_loopback({address, 1})) << address;
}

TEST(Encryption, FollowsTheAddressUnlessToldOtherwise) {
  const Endpoint here{"127.0.0.1", 1}, elsewhere{"10.0.0.1", 1};
  EXPECT_FALSE(wants_encryption(Encryption::beyond_loopback, here));
  EXPECT_TRUE(wants_encryption(Encryption::beyond_loopback, elsewhere));
  EXPECT_TRUE(wants_encryption(Encryption::always, here));
  EXPECT_FALSE(wants_encryption(Encryption::off, elsewhere));
}

TEST(Secret, IsMeasuredByItsAlphabet) {
  EXPECT_EQ(secret_bits(std::string(32, 'f')), 128);
  EXPECT_EQ(secret_bits(std::string(31, 'f') + "g"), 192);
  EXPECT_LT(secret_bits(std::string(38, '7')), kLeastSecretBits);
  EXPECT_GT(secret_bits(std::string(39, '7')), kLeastSecretBits);
  EXPECT_EQ(secret_bits(""), 0);
}

TEST(Secret, AWeakOneIsRefusedBeyondLoopbackOnly) {
  EXPECT_TRUE(check_secret("weak", {"127.0.0.1", 1}, 1));
  EXPECT_TRUE(check_secret(std::string(32, 'a'), {"10.0.0.1", 1}, 1));
  const auto refused = check_secret(std::string(31, 'a'), {"10.0.0.1", 29500}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, HasSubstr("rank 1 and 10.0.0.1:29500 are not"));
  EXPECT_THAT(refused.error().message, HasSubstr("has at most 124 bits; REMUDA_SECRET must be"));
}

}  // namespace
}  // namespace remuda::comm
