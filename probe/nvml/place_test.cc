#include "probe/nvml/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace remuda::probe::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Place : public ::testing::Test {
 protected:
  void write_pci(const std::string& name, const std::string& text) {
    root_.write("sys/bus/pci/devices/0000:27:00.0/" + name, text);
  }

  ScratchFolder root_;
  KernelFiles files_{root_.path("proc"), root_.path("sys")};
};

TEST_F(Place, IsWhatTheKernelSays) {
  write_pci("local_cpulist", "0-2,8\n");
  write_pci("numa_node", "1\n");
  EXPECT_THAT(near_cores(files_, "0000:27:00.0").value(), ElementsAre(0, 1, 2, 8));
  EXPECT_EQ(numa_node(files_, "0000:27:00.0").value(), 1);
}

TEST_F(Place, IsMissingWithTheReason) {
  write_pci("local_cpulist", "\n");
  write_pci("numa_node", "-1\n");
  EXPECT_THAT(near_cores(files_, "0000:27:00.0").missing().detail, HasSubstr("lists no CPUs"));
  EXPECT_EQ(numa_node(files_, "0000:27:00.0").missing().detail, "the kernel assigns no NUMA node to 0000:27:00.0");
  EXPECT_FALSE(near_cores(files_, "0000:28:00.0").has_value());
  EXPECT_FALSE(numa_node(files_, "0000:28:00.0").has_value());
}

TEST_F(Place, TellsASwitchFromOtherBridges) {
  write_pci("class", "0x068000\n");
  write_pci("vendor", "0x10de\n");
  EXPECT_TRUE(is_fabric_switch(files_, "0000:27:00.0").value());
  write_pci("vendor", "0x1014\n");
  EXPECT_FALSE(is_fabric_switch(files_, "0000:27:00.0").value());
  EXPECT_FALSE(is_fabric_switch(files_, "0000:28:00.0").has_value());
}

TEST_F(Place, ModuleVersionComesFromEitherFile) {
  EXPECT_FALSE(module_version(files_).has_value());
  root_.write(
      "proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (x)\nGCC version: 12.2.0\n");
  EXPECT_EQ(module_version(files_).value(), "560.35.03");
  root_.write("sys/module/nvidia/version", "535.104.05\n");
  EXPECT_EQ(module_version(files_).value(), "535.104.05");
}

TEST_F(Place, ModuleVersionIsNotTheCompilers) {
  root_.write("proc/driver/nvidia/version", "NVRM version: none\nGCC version: 12.2.0\n");
  EXPECT_FALSE(module_version(files_).has_value());
}

TEST_F(Place, DrivenAddressesAreSorted) {
  EXPECT_THAT(driven_addresses(files_), IsEmpty());
  for (const char* name : {"0000:87:00.0", "0000:07:00.0", "power"})
    root_.make_folder(std::string("proc/driver/nvidia/gpus/") + name);
  EXPECT_THAT(driven_addresses(files_), ElementsAre("0000:07:00.0", "0000:87:00.0"));
}

}  // namespace
}  // namespace remuda::probe::nvml
