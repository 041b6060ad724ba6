#include "web/access.h"

#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace remuda::web {
namespace {

TEST(WebAccess, TokensAreLongAndUnlike) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(make_token().value());
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_EQ(tokens.begin()->size(), 32u);
}

TEST(WebAccess, TheTokenAloneOpens) {
  EXPECT_TRUE(is_authorized("Bearer 0123", "0123"));
  for (const char* other :
       {"", "0123", "Bearer ", "Bearer 012", "Bearer 01234", "Bearer 0124", "bearer0123", "Basic 0123"})
    EXPECT_FALSE(is_authorized(other, "0123")) << other;
  EXPECT_FALSE(is_authorized("Bearer ", "")) << "a server without a token is open to nobody";
}

TEST(WebAccess, AddressesAndOwnNamesAreThisServer) {
  const std::vector<std::string> names{"corral.example"};
  for (const char* own : {"127.0.0.1:8790", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8790", "[::1]",
                          "10.1.2.3:8", "corral.example:8790", "Corral.Example"})
    EXPECT_TRUE(is_own_host(own, names)) << own;
}

TEST(WebAccess, OtherNamesAreNot) {
  const std::vector<std::string> names{"corral.example"};
  for (const char* other : {"", "evil.example", "evil.example:8790", "127.0.0.1.evil.example", "localhost.evil.example",
                            "corral.example.evil", "[::1", "[evil]:1", "127.0.0.1:x", "127.0.0.1:8790:1", "127.1",
                            "[::1]evil", "127.0.0.1:123456789"})
    EXPECT_FALSE(is_own_host(other, names)) << other;
}

TEST(WebAccess, AnOriginIsOwnOrNone) {
  EXPECT_TRUE(is_own_origin("", "http", "localhost:1"));
  EXPECT_TRUE(is_own_origin("http://localhost:1", "http", "localhost:1"));
  for (const char* other :
       {"null", "http://localhost:2", "https://localhost:1", "http://evil.example", "http://localhost:1/"})
    EXPECT_FALSE(is_own_origin(other, "http", "localhost:1")) << other;
}

TEST(WebAccess, LoopbackIsByAddress) {
  for (const char* own : {"127.0.0.1", "127.9.9.9", "::1"}) EXPECT_TRUE(is_loopback(own)) << own;
  for (const char* other : {"0.0.0.0", "128.0.0.1", "::", "localhost", ""}) EXPECT_FALSE(is_loopback(other)) << other;
}

}  // namespace
}  // namespace remuda::web
