#include "share/mps_folder.h"

#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/testing/scratch_folder.h"

namespace remuda::share {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// A pool's folder with a short path, removed with its content at the end.
class MpsFolders : public testing::Test {
 protected:
  ~MpsFolders() override {
    if (const auto folder = MpsFolder::find(pool_)) fs::remove_all(folder->path());
  }
  MpsFolder make() const {
    auto folder = MpsFolder::make(pool_);
    EXPECT_TRUE(folder) << folder.error().message;
    return *folder;
  }
  static mode_t mode_of(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  const ScratchFolder scratch_{"/tmp"};
  const std::string pool_ = scratch_.path();
};

TEST_F(MpsFolders, StandsInAPoolOfOneUserAndIsPrivate) {
  EXPECT_FALSE(MpsFolder::find(pool_));
  const MpsFolder folder = make();
  EXPECT_THAT(folder.path(), StartsWith(pool_ + "/"));
  EXPECT_EQ(mode_of(folder.path()), 0700u);
  ASSERT_TRUE(MpsFolder::find(pool_));
  EXPECT_EQ(MpsFolder::find(pool_)->path(), folder.path());
}

TEST_F(MpsFolders, StandsElsewhereWhereOthersMayWriteThePool) {
  ::chmod(pool_.c_str(), 02770);
  const MpsFolder folder = make();
  EXPECT_THAT(folder.path(), StartsWith(fmt::format("/tmp/remuda-{}/", ::geteuid())));
  EXPECT_EQ(mode_of(folder.path()), 0700u);
  ::chmod(pool_.c_str(), 0700);
  fs::remove_all(folder.path());
}

TEST_F(MpsFolders, LeavesRoomForTheAddressOfASocket) {
  const std::string deep = pool_ + "/" + std::string(60, 'x');
  fs::create_directory(deep);
  const auto folder = MpsFolder::make(deep);
  ASSERT_TRUE(folder);
  EXPECT_LT((folder->of_device("GPU-1") + "/pipe/control_privileged").size(), sizeof(sockaddr_un::sun_path));
  fs::remove_all(folder->path());
}

TEST_F(MpsFolders, RefusesOneThatIsOpenToOthers) {
  const std::string path = make().path();
  ::chmod(path.c_str(), 0755);
  const auto again = MpsFolder::make(pool_);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr(path));
  EXPECT_FALSE(MpsFolder::find(pool_));
  ::chmod(path.c_str(), 0700);
}

TEST_F(MpsFolders, RefusesALink) {
  const std::string path = make().path();
  fs::remove(path);
  fs::create_symlink("/tmp", path);
  EXPECT_FALSE(MpsFolder::make(pool_));
  fs::remove(path);
}

TEST_F(MpsFolders, KnowsTheFoldersOfDevices) {
  const MpsFolder folder = make();
  EXPECT_THAT(folder.devices(), IsEmpty());
  EXPECT_NE(folder.of_device("GPU-1"), folder.of_device("GPU-2"));
  ASSERT_TRUE(make_private_folder(folder.of_device("GPU-1")));
  EXPECT_THAT(folder.devices(), ElementsAre(folder.of_device("GPU-1")));
}

TEST_F(MpsFolders, LetsOneInAtATimeAndWaitsNotForEver) {
  const MpsFolder folder = make();
  auto first = folder.lock(0);
  ASSERT_TRUE(first);
  const auto second = folder.lock(0.05);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("too long"));
  first->reset();
  EXPECT_TRUE(folder.lock(0));
}

TEST_F(MpsFolders, IsNotLockedOnceItIsRemoved) {
  const MpsFolder folder = make();
  {
    const auto lock = folder.lock(0);
    ASSERT_TRUE(lock && *lock);
    folder.remove_if_empty();
  }
  const auto lock = folder.lock(0);
  EXPECT_TRUE(lock && !*lock);
  EXPECT_FALSE(MpsFolder::find(pool_));
}

}  // namespace
}  // namespace remuda::share
