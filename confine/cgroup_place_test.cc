#include "confine/cgroup_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::confine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kUnified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,relatime shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char* kDevices = "36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n";
constexpr const char* kOthers =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";

TEST(CgroupPlace, IsFoundInATreeOfVersionTwo) {
  EXPECT_THAT(cgroup_places(kUnified, "0::/user.slice/a.scope\n"),
              ElementsAre(CgroupPlace{2, "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/a.scope"}));
  EXPECT_THAT(cgroup_places(kUnified, "0::/\n"), ElementsAre(CgroupPlace{2, "/sys/fs/cgroup", "/sys/fs/cgroup"}));
}

TEST(CgroupPlace, OfVersionOneIsThatOfTheDevices) {
  EXPECT_THAT(cgroup_places(std::string(kOthers) + kDevices, "5:devices:/a\n1:cpu:/b\n0::/c\n"),
              ElementsAre(CgroupPlace{1, "/sys/fs/cgroup/devices", "/sys/fs/cgroup/devices/a"}));
  EXPECT_THAT(cgroup_places("36 31 0:33 / /mnt rw - cgroup none rw,cpu,devices\n", "5:cpu,devices:/a\n"),
              ElementsAre(CgroupPlace{1, "/mnt", "/mnt/a"}));
}

TEST(CgroupPlace, OfVersionOneMayBeThatOfAnotherController) {
  EXPECT_THAT(cgroup_places(std::string(kOthers) + kDevices, "5:devices:/a\n1:cpu:/b\n0::/c\n", "cpu"),
              ElementsAre(CgroupPlace{1, "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/b"}));
  EXPECT_THAT(cgroup_places(std::string(kOthers) + kDevices, "5:devices:/a\n1:cpu:/b\n", "memory"), IsEmpty());
}

TEST(CgroupPlace, OfVersionTwoComesFirst) {
  const auto places = cgroup_places(std::string(kDevices) + kUnified, "5:devices:/a\n0::/b\n");
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].version, 2);
  EXPECT_EQ(places[1].version, 1);
}

TEST(CgroupPlace, OfAContainerIsBelowWhatItSees) {
  const char* mounts = "36 31 0:33 /box/7 /sys/fs/cgroup ro master:11 - cgroup2 cgroup rw\n";
  EXPECT_THAT(cgroup_places(mounts, "0::/box/7/job\n"),
              ElementsAre(CgroupPlace{2, "/sys/fs/cgroup", "/sys/fs/cgroup/job"}));
  EXPECT_THAT(cgroup_places(mounts, "0::/box/7\n"), ElementsAre(CgroupPlace{2, "/sys/fs/cgroup", "/sys/fs/cgroup"}));
  EXPECT_THAT(cgroup_places(mounts, "0::/box/77\n"), IsEmpty()) << "another part of the tree";
}

TEST(CgroupPlace, MayHaveSpacesInItsPath) {
  EXPECT_THAT(cgroup_places("30 23 0:26 / /my\\040groups\\134 rw - cgroup2 none rw\n", "0::/a b\n"),
              ElementsAre(CgroupPlace{2, "/my groups\\", "/my groups\\/a b"}));
}

TEST(CgroupPlace, IsNoneWhereTheTextsMakeNoSense) {
  EXPECT_THAT(cgroup_places("", ""), IsEmpty());
  EXPECT_THAT(cgroup_places(kUnified, "5:devices:/a\n"), IsEmpty());
  EXPECT_THAT(cgroup_places(kUnified, "0::nowhere\n0:\n:::\n"), IsEmpty());
  EXPECT_THAT(cgroup_places("30 23 - cgroup2\n- - - - - -\n\n30 23 0:26 / /x rw - cgroup2\n", "0::/\n"), IsEmpty());
}

}  // namespace
}  // namespace remuda::confine
