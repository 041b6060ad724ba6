#include "web/access.h"

#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <set>
#include <sys/resource.h>
#include <vector>

#include "base/testing/scratch_folder.h"

namespace remuda::web {
namespace {

using testing::HasSubstr;

TEST(WebAccess, TokensAreLongAndUnlike) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(make_token().value());
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_EQ(tokens.begin()->size(), 32u);
}

TEST(WebAccess, ATokenFileIsMadeOnceAndForItsOwnerAlone) {
  const ScratchFolder folder;
  const std::string path = folder.path("token");
  const std::string token = token_in(path).value();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(token_in(path).value(), token);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  EXPECT_THAT(token_in(path).error().message, HasSubstr("may be read by others than its owner: chmod 600"));
}

TEST(WebAccess, WhereNoTokenCanBeWrittenThereIsNoFile) {
  const ScratchFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto token = token_in(folder.path("token"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(token);
  EXPECT_TRUE(token_in(folder.path("token"))) << "the next start makes one";
}

TEST(WebAccess, ATokenFileHasATokenAndNothingElse) {
  const ScratchFolder folder;
  const std::string path = folder.write("token", "0123456789abcdef\r\n");
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  EXPECT_EQ(token_in(path).value(), "0123456789abcdef");
  for (const std::string& text :
       {std::string(), std::string("0123456789abcde"), std::string("0123456789 abcdef"),
        std::string("0123456789abcdef\nmore"), std::string(257, 'a'), std::string(99999, 'a')}) {
    folder.write("token", text);
    EXPECT_THAT(token_in(path).error().message, HasSubstr("has no token: 16 to 256")) << text.size();
  }
  EXPECT_THAT(token_in(folder.path()).error().message, HasSubstr("it is a directory, not a file"));
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
  EXPECT_TRUE(is_own_origin("https://localhost:1", "https", "localhost:1"));
  EXPECT_FALSE(is_own_origin("http://localhost:1", "https", "localhost:1")) << "what anybody on the way can write";
}

TEST(WebAccess, LoopbackIsByAddress) {
  for (const char* own : {"127.0.0.1", "127.9.9.9", "::1"}) EXPECT_TRUE(is_loopback(own)) << own;
  for (const char* other : {"0.0.0.0", "128.0.0.1", "::", "localhost", ""}) EXPECT_FALSE(is_loopback(other)) << other;
}

}  // namespace
}  // namespace remuda::web
