#include "share/mps.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/env.h"
#include "base/testing/scratch_folder.h"

namespace remuda::share {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Device volta() {
  Device device{.id = "GPU-1", .kind = DeviceKind::gpu, .vendor = "NVIDIA"};
  device.uuid = "GPU-1";
  device.compute_capability = "7.0";
  return device;
}

TEST(Mps, ServesGpusOfItsMakerFromVoltaOn) {
  EXPECT_EQ(mps_obstacle(volta()), "");
  Device device = volta();
  device.compute_capability = "12.0";
  EXPECT_EQ(mps_obstacle(device), "");
  device.compute_capability = "6.1";
  EXPECT_THAT(mps_obstacle(device), HasSubstr("this GPU has 6.1"));
  device.compute_capability = Reading<std::string>{};
  EXPECT_THAT(mps_obstacle(device), HasSubstr("not known"));
  device = volta();
  device.vendor = "AMD";
  EXPECT_THAT(mps_obstacle(device), HasSubstr("NVIDIA's GPUs"));
  EXPECT_THAT(mps_obstacle({.id = "cpu:0", .vendor = "NVIDIA"}), HasSubstr("NVIDIA's GPUs"));
}

TEST(Mps, NeedsANameForTheDeviceAndLeaveToCompute) {
  Device device = volta();
  device.uuid = Reading<std::string>{};
  EXPECT_THAT(mps_obstacle(device), HasSubstr("UUID"));
  device = volta();
  device.compute_mode = ComputeMode::prohibited;
  EXPECT_THAT(mps_obstacle(device), HasSubstr("prohibited"));
  device.compute_mode = ComputeMode::exclusive;
  EXPECT_EQ(mps_obstacle(device), "");
}

TEST(Mps, LimitsThreadsAndMemoryOfTheOneDevice) {
  EXPECT_THAT(mps_limits(0.3, int64_t{12} << 30), ElementsAre(Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30"),
                                                              Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=12288M")));
  EXPECT_EQ(mps_limits(1.0 / 3, 0)[0].second, "33.33");
}

TEST(Mps, LooksForItsProgramInThePathOnly) {
  const ScratchFolder folder;
  const std::string before = env::get(env::path).value_or("");
  ::setenv("PATH", ("relative::" + folder.path() + ":/nowhere").c_str(), 1);
  EXPECT_EQ(find_mps_control(), std::nullopt);
  folder.make_folder("nvidia-cuda-mps-control");
  EXPECT_EQ(find_mps_control(), std::nullopt) << "a folder is no program";
  folder.remove("nvidia-cuda-mps-control");
  folder.link("nvidia-cuda-mps-control", "/bin/true");
  EXPECT_EQ(find_mps_control(), folder.path("nvidia-cuda-mps-control"));
  ::setenv("PATH", before.c_str(), 1);
}

}  // namespace
}  // namespace remuda::share
