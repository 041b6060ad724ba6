#include "agent/bearer.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::agent {
namespace {

TEST(SliceOwner, IsReadOfTheTreesThatSystemdHas) {
  EXPECT_EQ(slice_owner("0::/user.slice/user-1000.slice/session-3.scope\n"), 1000);
  EXPECT_EQ(slice_owner("0::/user.slice/user-1000.slice\n"), 1000);
  EXPECT_EQ(slice_owner("12:devices:/user.slice\n1:name=systemd:/user.slice/user-1001.slice/a.scope\n0::/\n"), 1001);
  for (const char* none : {"", "0::/\n", "0::/system.slice/cron.service\n", "0::/user.slice\n",
                           "0::/user.slice/user-.slice\n", "0::/user.slice/user-1000.slicex/a\n",
                           "0::/user.slice/user--5.slice\n", "4:memory:/user.slice/user-1000.slice\n"})
    EXPECT_EQ(slice_owner(none), std::nullopt) << none;
}

TEST(SliceOwner, IsNotWhatAUserCallsACgroup) {
  EXPECT_EQ(slice_owner("0::/user.slice/user-1000.slice/user@1000.service/user.slice/user-1001.slice\n"), 1000);
  EXPECT_EQ(slice_owner("0::/a:/user.slice/user-1001.slice\n"), std::nullopt);
  EXPECT_EQ(slice_owner("0::/user.slice/a/user-1001.slice\n"), std::nullopt);
}

TEST(Bearers, AreTheOwnersOfSlicesAndOfRangesOfIds) {
  const ScratchFolder folder;
  folder.write("subuid", "eve:100000:65536\n1001:200000:65536\nroot:300000:10\nnonsense\n");
  Bearers bearers(folder.path("subuid"));
  EXPECT_EQ(bearers.of(1000, std::nullopt), "1000");
  EXPECT_EQ(bearers.of(100'000, std::nullopt), "eve");
  EXPECT_EQ(bearers.of(165'535, std::nullopt), "eve");
  EXPECT_EQ(bearers.of(165'536, std::nullopt), "165536");
  EXPECT_EQ(bearers.of(200'007, std::nullopt), "1001");
  EXPECT_EQ(bearers.of(100'000, 1000), "1000") << "the slice goes first";
  EXPECT_EQ(bearers.of(100'000, std::nullopt, true), "100000") << "a user of a directory, and of no container";
  EXPECT_EQ(bearers.of(0, 1000), "0") << "who has become root in a user's session";
}

TEST(Bearers, FollowTheFile) {
  const ScratchFolder folder;
  Bearers bearers(folder.path("subuid"));
  EXPECT_EQ(bearers.of(100'000, std::nullopt), "100000");
  folder.write("subuid", "eve:100000:65536\n");
  EXPECT_EQ(bearers.of(100'000, std::nullopt), "eve");
}

}  // namespace
}  // namespace remuda::agent
