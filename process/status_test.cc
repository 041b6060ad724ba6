#include "process/status.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace remuda::process {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ProcessStatus, IsReadFromItsText) {
  const ProcessStatus status = parse_status(
      "Name:\ta b\nUmask:\t0022\nUid:\t1\t2\t3\t4294967294\nGid:\t5\t6\t7\t8\nFDSize:\t64\nGroups:\t27 100 \n");
  EXPECT_EQ(status.name, "a b");
  EXPECT_THAT(status.users, ElementsAre(1, 2, 3, -2));
  EXPECT_THAT(status.groups, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(status.further_groups, ElementsAre(27, 100));
  EXPECT_EQ(status.descriptor_slots, 64);
}

TEST(ProcessStatus, HasNothingWhereTheTextSaysNothing) {
  for (const char* text :
       {"", "Uid:\n", "Uid:\tme\tme\tme\tme\n", "Uid:\t1\t2\t3\n", "Uid:\t1\t2\t3\t4\t5\n", "\xff\xfe"})
    EXPECT_THAT(parse_status(text).users, IsEmpty()) << text;
  EXPECT_EQ(parse_status("FDSize:\tmany\n").descriptor_slots, 0);
}

TEST(ProcessStatus, OfThisProcess) {
  const ProcessStatus status = parse_status(read_text("/proc/self/status").value_or(""));
  EXPECT_FALSE(status.name.empty());
  EXPECT_EQ(status.users.front(), static_cast<int>(::getuid()));
  EXPECT_GT(status.descriptor_slots, 0);
}

TEST(Handles, SignalsThatTheProcessHasHandlersFor) {
  EXPECT_EQ(parse_status("SigCgt:\t0000000180000200\n").caught, 0x180000200U);
  const auto before = std::signal(SIGUSR1, SIG_DFL);
  EXPECT_FALSE(handles(::getpid(), SIGUSR1));
  std::signal(SIGUSR1, SIG_IGN);
  EXPECT_FALSE(handles(::getpid(), SIGUSR1)) << "who ignores it does nothing for it";
  std::signal(SIGUSR1, [](int) {});
  EXPECT_TRUE(handles(::getpid(), SIGUSR1));
  std::signal(SIGUSR1, before);
  for (const int signal : {-1, 0, 65}) EXPECT_FALSE(handles(::getpid(), signal));
  EXPECT_FALSE(handles(1 << 30, SIGUSR1));
}

TEST(SoleUser, IsWhoHasAllTheIdsOfAProcess) {
  EXPECT_EQ(sole_user_of(::getpid()), static_cast<int>(::getuid()));
  EXPECT_EQ(sole_user_of(1 << 30), std::nullopt);
  EXPECT_EQ(sole_user_of(0), std::nullopt);
}

}  // namespace
}  // namespace remuda::process
