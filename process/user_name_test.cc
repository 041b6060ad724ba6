#include "process/user_name.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::process {
namespace {

TEST(UserName, TheUsersOfAContainerAreTheirOwners) {
  const ScratchFolder folder;
  const std::string file = folder.write(
      "subuid", "nobody-of-that-name:900000:10\n61001:1000000:65536\n\nroot:2000000:10\n7:x:1\n61002:3000000:10:4\n");
  EXPECT_EQ(owner_of(1000000, file), 61001);
  EXPECT_EQ(owner_of(1065535, file), 61001);
  EXPECT_EQ(owner_of(1065536, file), 1065536);
  EXPECT_EQ(owner_of(999999, file), 999999);
  EXPECT_EQ(owner_of(900000, file), 900000);
  EXPECT_EQ(owner_of(2000000, file), 2000000) << "a container of root is not root";
  EXPECT_EQ(owner_of(3000000, file), 3000000) << "no line of that file";
  EXPECT_EQ(owner_of(1000000, folder.path("none")), 1000000);
  EXPECT_EQ(owner_of(0, folder.write("all", "61001:0:65536\n")), 0) << "it has a name of its own";
}

TEST(UserName, IsAUsersOrAGroupsOrNobodys) {
  EXPECT_TRUE(is_user("root"));
  EXPECT_TRUE(is_user("61001")) << "who has no name has a number";
  EXPECT_FALSE(is_user("nobody-of-that-name"));
  EXPECT_TRUE(is_group("root"));
  EXPECT_FALSE(is_group("nobody-of-that-name"));
}

}  // namespace
}  // namespace remuda::process
