#include "confine/visibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::confine {
namespace {

using testing::Contains;
using testing::Not;
using testing::Pair;

Device gpu(int index, const std::string& vendor, const std::string& uuid = "") {
  Device device;
  device.kind = DeviceKind::gpu;
  device.index = index;
  device.vendor = vendor;
  device.id = uuid.empty() ? "gpu:" + std::to_string(index) : uuid;
  if (!uuid.empty()) device.uuid = uuid;
  return device;
}

Inventory mixed() {
  Inventory inventory;
  inventory.devices = {gpu(0, "NVIDIA", "GPU-a"), gpu(1, "NVIDIA Corporation", "GPU-b"), gpu(2, "AMD", "GPU-0c"),
                       gpu(3, "NVIDIA")};
  Device cpu;
  cpu.id = "cpu:0";
  inventory.devices.push_back(cpu);
  return inventory;
}

TEST(Visibility, NamesNvidiaDevicesByUuidInTheOrderGranted) {
  const Visibility seen = visibility(mixed(), {"GPU-b", "GPU-a"});
  EXPECT_THAT(seen.set, Contains(Pair("CUDA_VISIBLE_DEVICES", "GPU-b,GPU-a")));
  EXPECT_THAT(seen.set, Contains(Pair("CUDA_DEVICE_ORDER", "PCI_BUS_ID")));
  EXPECT_THAT(seen.set, Contains(Pair("ROCR_VISIBLE_DEVICES", "")));
}

TEST(TorchDevice, IsWhatLibtorchCallsIt) {
  EXPECT_EQ(torch_device(gpu(0, "NVIDIA")), "cuda");
  EXPECT_EQ(torch_device(gpu(0, "AMD")), "cuda") << "ROCm's libtorch calls it so";
  EXPECT_EQ(torch_device(gpu(0, "Intel Corporation")), "xpu");
  EXPECT_EQ(torch_device(gpu(0, "Matrox")), "");
  EXPECT_EQ(torch_device(Device{.id = "cpu:0", .vendor = "AMD"}), "cpu");
}

TEST(Visibility, FiltersAmdDevicesOnce) {
  Inventory inventory;
  inventory.devices = {gpu(0, "AMD", "GPU-0c"), gpu(1, "Advanced Micro Devices, Inc.", "GPU-0d")};
  const Visibility seen = visibility(inventory, {"GPU-0c"});
  EXPECT_THAT(seen.set, Contains(Pair("ROCR_VISIBLE_DEVICES", "GPU-0c")));
  EXPECT_THAT(seen.set, Not(Contains(Pair("CUDA_VISIBLE_DEVICES", testing::_))));
  EXPECT_THAT(seen.unset, Contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(seen.unset, Contains("HIP_VISIBLE_DEVICES"));
}

TEST(Visibility, HidesOneMakerFromAJobOfTheOther) {
  const Visibility seen = visibility(mixed(), {"GPU-0c"});
  EXPECT_THAT(seen.set, Contains(Pair("CUDA_VISIBLE_DEVICES", "")));
  EXPECT_THAT(seen.set, Contains(Pair("HIP_VISIBLE_DEVICES", "0")));
  EXPECT_THAT(seen.set, Contains(Pair("ROCR_VISIBLE_DEVICES", "GPU-0c")));
}

TEST(Visibility, ShowsBothMakersWhereBothWereGranted) {
  const Visibility seen = visibility(mixed(), {"GPU-a", "GPU-0c"});
  EXPECT_THAT(seen.set, Contains(Pair("CUDA_VISIBLE_DEVICES", "GPU-a")));
  EXPECT_THAT(seen.set, Contains(Pair("HIP_VISIBLE_DEVICES", "0")));
  EXPECT_THAT(seen.set, Contains(Pair("ROCR_VISIBLE_DEVICES", "GPU-0c")));
}

TEST(Visibility, HidesEveryGpuFromAJobOnTheCpu) {
  const Visibility seen = visibility(mixed(), {"cpu:0"});
  EXPECT_THAT(seen.set, Contains(Pair("CUDA_VISIBLE_DEVICES", "")));
  EXPECT_THAT(seen.set, Contains(Pair("ROCR_VISIBLE_DEVICES", "")));
}

TEST(Visibility, GoesByIndexWhereThereIsNoUuidAndPassesOverStrangers) {
  const Visibility seen = visibility(mixed(), {"gpu:3", "gpu:99"});
  EXPECT_THAT(seen.set, Contains(Pair("CUDA_VISIBLE_DEVICES", "2")));  // the third of its maker
}

}  // namespace
}  // namespace remuda::confine
