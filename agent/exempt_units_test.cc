#include "agent/exempt_units.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"
#include "confine/device_guard.h"

namespace remuda::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ExemptUnits, LieWhereSystemdPutsThem) {
  EXPECT_EQ(exempt_folder("a.service"), "system.slice/a.service");
  EXPECT_EQ(exempt_folder("a-b.service"), "system.slice/a-b.service");
  EXPECT_EQ(exempt_folder("a.scope"), "system.slice/a.scope");
  EXPECT_EQ(exempt_folder("user.slice"), "user.slice");
  EXPECT_EQ(exempt_folder("user-1000.slice"), "user.slice/user-1000.slice");
  EXPECT_EQ(exempt_folder("a-b-c.slice"), "a.slice/a-b.slice/a-b-c.slice");
  EXPECT_EQ(exempt_folder("/x//y/"), "x/y");
}

TEST(ExemptUnits, HaveTheProcessesOfTheirCgroupsAndThoseBelow) {
  const std::vector<std::string> exempt{"a.service", "user-7.slice"};
  EXPECT_TRUE(is_exempt(exempt, "5:devices:/\n0::/system.slice/a.service\n"));
  EXPECT_TRUE(is_exempt(exempt, "0::/user.slice/user-7.slice/session-1.scope\n"));
  EXPECT_FALSE(is_exempt(exempt, "0::/system.slice/a.service2\n"));
  EXPECT_FALSE(is_exempt(exempt, "0::/x/system.slice/a.service\n"));
  EXPECT_FALSE(is_exempt(exempt, "5:devices:/system.slice/a.service\n0::/\n"));
  EXPECT_FALSE(is_exempt(exempt, ""));
}

/// The folders of cgroups are folders.
TEST(ExemptUnits, AreFoundWhenTheyStart) {
  const ScratchFolder root;
  root.make_folder("system.slice");
  ExemptUnits units(root.path());
  const auto look = [&] { return units.look({"a.service", "user-7.slice"}); };
  EXPECT_THAT(look().cgroups, IsEmpty());
  EXPECT_THAT(look().absent, ElementsAre("a.service", "user-7.slice"));
  EXPECT_FALSE(units.has_news());
  root.make_folder("system.slice/a.service");
  EXPECT_TRUE(units.has_news());
  EXPECT_THAT(look().cgroups, ElementsAre(confine::cgroup_id(root.path("system.slice/a.service"))));
  EXPECT_THAT(look().absent, ElementsAre("user-7.slice"));
  EXPECT_FALSE(units.has_news());
  root.make_folder("user.slice");
  EXPECT_TRUE(units.has_news());
  EXPECT_THAT(look().cgroups, SizeIs(1));
  root.make_folder("user.slice/user-7.slice");
  EXPECT_TRUE(units.has_news());
  EXPECT_THAT(look().cgroups, SizeIs(2));
  std::filesystem::remove(root.path("system.slice/a.service"));
  EXPECT_THAT(look().cgroups, ElementsAre(confine::cgroup_id(root.path("user.slice/user-7.slice"))));
}

TEST(ExemptUnits, TakeTheirNewsWithoutALook) {
  const ScratchFolder root;
  root.make_folder("system.slice");
  ExemptUnits units(root.path());
  units.look({"a.service"});
  root.make_folder("system.slice/b.service");
  EXPECT_TRUE(units.has_news());
  units.drain();
  EXPECT_FALSE(units.has_news());
}

}  // namespace
}  // namespace remuda::agent
