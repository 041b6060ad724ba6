#include "cli/watch/exports.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/testing/scratch_folder.h"

namespace remuda::cli {
namespace {

using testing::HasSubstr;

class ExportsTest : public testing::Test {
 protected:
  ExportsTest() {
    for (int index = 0; index < 3; ++index) {
      Device device;
      device.id = "GPU-" + std::to_string(index);
      device.kind = DeviceKind::gpu;
      device.index = index;
      device.vendor = index == 0 ? "AMD" : "NVIDIA";
      machine_.devices.push_back(device);
    }
    pool_.leases = {{.job = 7, .device = "GPU-2"}};
  }
  Result<void> write(Exports& exports) { return exports.write({machine_, pool_, {}}); }
  std::string text(const std::string& name) const { return read_text(folder_.path(name)).value_or("none"); }

  ScratchFolder folder_;
  Inventory machine_;
  pool::PoolState pool_;
};

TEST_F(ExportsTest, FilesOfJobsAreThereForTheDevicesThatAre) {
  {
    Exports exports("", folder_.path());
    ASSERT_TRUE(write(exports));
    EXPECT_EQ(text("0"), "");
    EXPECT_EQ(text("1"), "7\n");
    machine_.devices.pop_back();
    ASSERT_TRUE(write(exports));
    EXPECT_EQ(text("0"), "");
    EXPECT_EQ(text("1"), "none") << "the device is gone";
  }
  EXPECT_EQ(text("0"), "none") << "nobody watches any more";
}

TEST_F(ExportsTest, WritesWhatHasChangedOrIsGone) {
  Exports exports("", folder_.path());
  const auto number = [&] {
    struct stat info{};
    return ::stat(folder_.path("1").c_str(), &info) == 0 ? info.st_mtim.tv_nsec : -1;
  };
  ASSERT_TRUE(write(exports));
  const auto first = number();
  ASSERT_TRUE(write(exports));
  EXPECT_EQ(number(), first);
  ::unlink(folder_.path("1").c_str());
  ASSERT_TRUE(write(exports));
  EXPECT_EQ(text("1"), "7\n");
  pool_.leases.clear();
  ASSERT_TRUE(write(exports));
  EXPECT_EQ(text("1"), "");
}

TEST_F(ExportsTest, OneThatCannotBeWrittenKeepsNoOther) {
  Exports exports(folder_.path("nowhere/x.prom"), folder_.path());
  EXPECT_THAT(write(exports).error().message, HasSubstr("there is no folder"));
  EXPECT_EQ(text("1"), "7\n");
}

}  // namespace
}  // namespace remuda::cli
