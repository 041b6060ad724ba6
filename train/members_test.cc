#include "train/members.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace remuda::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string members_line(const std::string& generation, const std::string& ranks, const std::string& port = "40000",
                         const std::string& fd = "7") {
  return fmt::format(R"({{"generation":{},"ranks":{},"port":{},"listen_fd":{},)"
                     R"("lost":[{{"rank":1,"device":"cpu:1","cause":"killed"}}]}})",
                     generation, ranks, port, fd);
}

TEST(Members, AreWhatTheLauncherSays) {
  const auto members = parse_members(members_line("2", "[0,2]"));
  ASSERT_TRUE(members) << members.error().message;
  EXPECT_EQ(members->generation, 2);
  EXPECT_THAT(members->ranks, ElementsAre(0, 2));
  EXPECT_EQ(members->port, 40000);
  EXPECT_EQ(members->listen_fd, 7);
  ASSERT_EQ(members->lost.size(), 1U);
  EXPECT_EQ(members->lost[0].rank, 1);
  EXPECT_EQ(members->lost[0].device, "cpu:1");
  EXPECT_EQ(members->lost[0].cause, "killed");
  EXPECT_EQ(members->lost[0].state, "") << "not made good yet";
}

TEST(Members, WhatIsNotCompleteIsRefused) {
  for (const std::string& line :
       {members_line("0", "[0]"), members_line("1", "[]"), members_line("1", "[1,1]"), members_line("1", "[2,1]"),
        members_line("1", "[-1]"), members_line("1", "[0.5]"), members_line("1", "[0]", "0"),
        members_line("1", "[0]", "65536"), members_line("1", "[0]", "40000", "-1"), members_line("1", "7"),
        std::string("[]"), std::string("{}")}) {
    const auto members = parse_members(line);
    ASSERT_FALSE(members) << line;
    EXPECT_THAT(members.error().message, HasSubstr("is not complete")) << line;
  }
  EXPECT_FALSE(parse_members("no JSON"));
}

TEST(Members, AreHeardAsTheLauncherSaysThemUntilItClosesItsEnd) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  MembersFeed feed{Fd(ends[0])};
  Fd launcher(ends[1]);
  EXPECT_TRUE(feed.is_elastic());
  const std::string lines = members_line("1", "[0,2]") + "\n" + members_line("2", "[2]") + "\n{\"cut\"";
  ASSERT_TRUE(write_all(launcher.get(), lines, "lines"));
  launcher.reset();
  EXPECT_EQ(feed.next().value().generation, 1);
  EXPECT_EQ(feed.next().value().generation, 2);
  const auto none = feed.next();
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("says of no ranks that they go on"));
}

}  // namespace
}  // namespace remuda::train
