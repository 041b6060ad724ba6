#include "quorum/post.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::quorum {
namespace {

using ::testing::HasSubstr;

constexpr double kPatience_s = 10;

TEST(Post, BringsDatagrams) {
  for (const std::string address : {"127.0.0.1", "::1"}) {
    auto one = Post::open(address), other = Post::open(address);
    if (!one && address == "::1") continue;  // a host without IPv6
    ASSERT_TRUE(one && other) << one.error().message;
    EXPECT_FALSE(other->receive());
    EXPECT_TRUE(one->send(other->endpoint(), "first"));
    other->wait(comm::deadline_after(kPatience_s));
    EXPECT_EQ(other->receive(), "first");
    EXPECT_TRUE(one->undelivered().empty());
  }
}

TEST(Post, SaysWhereNobodyListensAnyMore) {
  const auto one = Post::open("127.0.0.1");
  comm::Endpoint gone;
  {
    const auto other = Post::open("127.0.0.1");
    gone = other->endpoint();
  }
  one->send(gone, "to nobody");
  one->wait(comm::deadline_after(kPatience_s));
  EXPECT_FALSE(one->receive());
  const auto undelivered = one->undelivered();
  ASSERT_EQ(undelivered.size(), 1U);
  EXPECT_EQ(undelivered[0].text(), gone.text());
  const auto third = Post::open("127.0.0.1");
  EXPECT_TRUE(one->send(third->endpoint(), "to another"));
  third->wait(comm::deadline_after(kPatience_s));
  EXPECT_EQ(third->receive(), "to another") << "the failure before it is of that one";
}

TEST(Post, NeedsAnAddressThatOthersReach) {
  EXPECT_THAT(Post::open("0.0.0.0").error().message, HasSubstr("at which address they reach"));
  EXPECT_TRUE(Post::open("localhost"));
  EXPECT_THAT(Post::open("no address").error().message, HasSubstr("it is no address of a host"));
  EXPECT_THAT(Post::open("192.0.2.1").error().message, HasSubstr("cannot receive datagrams at 192.0.2.1"));
}

}  // namespace
}  // namespace remuda::quorum
