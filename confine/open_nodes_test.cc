#include "confine/open_nodes.h"

#include <fcntl.h>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"
#include "confine/testing/silent_mount.h"

namespace remuda::confine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr DeviceNode kFullNode{1, 7};

std::set<DeviceNode> own_open_nodes(size_t looks = kMostLooks) {
  return open_nodes("/proc/" + std::to_string(::getpid()), {kFullNode, {200, 1}}, looks);
}

Fd open_full(int flags) { return Fd(::open("/dev/full", flags | O_CLOEXEC)); }

TEST(OpenNodes, AreSeenWhereAProcessHasThemOpen) {
  EXPECT_THAT(own_open_nodes(), IsEmpty());
  const Fd open = open_full(O_RDONLY);
  EXPECT_THAT(own_open_nodes(), ElementsAre(kFullNode));
  EXPECT_TRUE(has_open(process::own_process_id(), {kFullNode}));
  EXPECT_FALSE(has_open(process::own_process_id(), {{200, 1}}));
  EXPECT_FALSE(has_open(process::own_process_id(), {}));
}

/// It takes no right to the file, so users could keep others from all devices by it.
TEST(OpenNodes, AreNoneWhereTheyAreOnlyPointedAt) {
  const Fd pointed = open_full(O_PATH);
  EXPECT_THAT(own_open_nodes(), IsEmpty());
  constexpr int kForIoctlAlone = 3;
  const Fd open = open_full(kForIoctlAlone);
  ASSERT_TRUE(open);
  EXPECT_THAT(own_open_nodes(), ElementsAre(kFullNode));
}

TEST(OpenNodes, AreSeenInATableThatAThreadHasForItself) {
  std::promise<bool> opened;
  std::promise<void> seen;
  std::thread thread([&] {
    const bool is_own = ::unshare(CLONE_FILES) == 0;
    const Fd open = open_full(O_RDONLY);
    opened.set_value(is_own && open);
    seen.get_future().wait();
  });
  EXPECT_TRUE(opened.get_future().get());
  EXPECT_THAT(own_open_nodes(), ElementsAre(kFullNode));
  seen.set_value();
  thread.join();
  EXPECT_THAT(own_open_nodes(), IsEmpty());
}

TEST(OpenNodes, AreLookedForWithinBounds) {
  size_t looks = 3;
  open_nodes("/proc/self", {kFullNode}, looks);
  EXPECT_EQ(looks, 0U) << "there are the three of each process, and that of the folder";
  EXPECT_TRUE(has_open(process::own_process_id(), {kFullNode}, 3)) << "it cannot be seen";
  EXPECT_FALSE(has_open(process::own_process_id(), {kFullNode}, 1000));
}

TEST(OpenNodes, KeepAProcessFromBeingAdopted) {
  EXPECT_TRUE(check_unopened({process::own_process_id()}, {kFullNode}));
  const Fd open = open_full(O_RDONLY);
  const auto checked = check_unopened({process::own_process_id()}, {kFullNode});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("has opened a device already, which a lease cannot take back"));
}

TEST(OpenNodes, AreFoundBesideAFileSystemThatDoesNotAnswer) {
  const ScratchFolder folder;
  SilentMount mount(folder.path());
  if (!mount.obstacle().empty()) GTEST_SKIP() << mount.obstacle();
  const Fd hung(::open(mount.file().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(hung) << "it answers so far";
  const Fd open = open_full(O_RDONLY);
  std::set<DeviceNode> found;
  EXPECT_FALSE(mount.is_asked_by([&] { found = own_open_nodes(); }));
  EXPECT_THAT(found, ElementsAre(kFullNode));
  struct stat info{};
  EXPECT_TRUE(mount.is_asked_by([&] { ::fstat(hung.get(), &info); })) << "stat waits for it";
}

}  // namespace
}  // namespace remuda::confine
