#include "agent/device_files.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::agent {
namespace {

TEST(DeviceFiles, AreToldOfAsTheyCome) {
  const ScratchFolder dev;
  DeviceFiles files(dev.path());
  EXPECT_FALSE(files.take_news());
  dev.write("card0", "");
  EXPECT_TRUE(files.take_news());
  EXPECT_FALSE(files.take_news());
  dev.make_folder("dri");
  EXPECT_TRUE(files.take_news()) << "what is in it already may be new";
  dev.write("dri/card0", "");
  EXPECT_TRUE(files.take_news());
  std::filesystem::remove(dev.path("dri/card0"));
  EXPECT_FALSE(files.take_news());
  std::filesystem::remove(dev.path("dri"));
  files.take_news();
  dev.make_folder("dri");
  EXPECT_TRUE(files.take_news());
  dev.write("dri/card0", "");
  EXPECT_TRUE(files.take_news());
}

TEST(DeviceFiles, AreNoneWhereThereIsNoFolder) {
  DeviceFiles files("/nowhere");
  EXPECT_FALSE(files.take_news());
}

}  // namespace
}  // namespace remuda::agent
