#include "doctor/pci_tree.h"

#include <gmock/gmock.h>

#include "base/testing/scratch_folder.h"

namespace remuda::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A configuration space whose extended capabilities are `first`, at 0x100, and ACS, at 0x200, set to `control`.
std::string config_space(unsigned control, unsigned first = 0x0001, size_t bytes = 4096) {
  std::string config(4096, '\0');
  const auto put = [&](size_t at, unsigned word, size_t count) {
    for (size_t i = 0; i < count; ++i) config[at + i] = static_cast<char>(word >> (8 * i));
  };
  put(0x100, first | 1u << 16 | 0x200u << 20, 4);
  put(0x200, 0x000du | 1u << 16, 4);
  put(0x206, control, 2);
  return config.substr(0, bytes);
}

Reading<bool> redirects(const std::string& config) {
  return acs_redirects({reinterpret_cast<const unsigned char*>(config.data()), config.size()});
}

TEST(AcsRedirects, LooksAtTheRedirectBits) {
  EXPECT_TRUE(redirects(config_space(0x1d)).value());
  EXPECT_TRUE(redirects(config_space(0x04)).value());
  EXPECT_FALSE(redirects(config_space(0x00)).value());
  EXPECT_FALSE(redirects(config_space(0x01)).value()) << "source validation alone redirects nothing";
}

TEST(AcsRedirects, SurvivesOddSpaces) {
  EXPECT_FALSE(redirects(std::string(4096, '\0')).value());
  EXPECT_FALSE(redirects(std::string(4096, '\xff')).value());
  EXPECT_FALSE(redirects(config_space(0x04, 0x0001, 256)).value()) << "conventional PCI";
  std::string circle(4096, '\0');
  circle[0x100] = 1;
  circle[0x103] = 0x10;
  EXPECT_FALSE(redirects(circle).value());
  EXPECT_THAT(redirects(config_space(0x04, 0x0001, 64)).missing().detail, HasSubstr("only root"));
  EXPECT_FALSE(redirects("").has_value());
}

TEST(SwitchesAbove, LeavesOutRootPortAndDevice) {
  EXPECT_THAT(switches_above("/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0/0000:23:00.0"),
              ElementsAre("0000:21:00.0", "0000:22:00.0"));
  EXPECT_THAT(switches_above("/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0"), IsEmpty());
  EXPECT_THAT(switches_above("/sys/devices/pci0000:00/0000:00:02.0"), IsEmpty());
  EXPECT_THAT(switches_above(""), IsEmpty());
}

class ReadSlot : public ::testing::Test {
 protected:
  static constexpr const char* kGpu = "sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0/0000:23:00.0";

  ReadSlot() {
    std::string path = "sys/devices/pci0000:20";
    for (const std::string address : {"0000:20:01.0", "0000:21:00.0", "0000:22:00.0", "0000:23:00.0"}) {
      path += "/" + address;
      tree_.write(path + "/config", config_space(address == "0000:22:00.0" || address == "0000:20:01.0" ? 0x1d : 0));
      tree_.link("sys/bus/pci/devices/" + address, tree_.path(path));
    }
  }
  GpuSlot read(const std::string& address = "0000:23:00.0") const { return read_slot(tree_.path(""), address); }

  ScratchFolder tree_;
};

TEST_F(ReadSlot, TellsDriverIommuAndSwitchPorts) {
  tree_.link(std::string(kGpu) + "/driver", "../../../bus/pci/drivers/nvidia");
  tree_.write(std::string(kGpu) + "/iommu_group/type", "DMA-FQ\n");
  const GpuSlot slot = read();
  EXPECT_EQ(slot.bound_driver.value(), "nvidia");
  EXPECT_TRUE(slot.iommu_translates.value());
  EXPECT_THAT(slot.acs_redirects.value(), ElementsAre("0000:22:00.0")) << "not the root port";
}

TEST_F(ReadSlot, TellsWhatIsNotThere) {
  const GpuSlot slot = read();
  EXPECT_EQ(slot.bound_driver.value(), "");
  EXPECT_FALSE(slot.iommu_translates.value());
}

TEST_F(ReadSlot, PassThroughIsNotTranslation) {
  tree_.write(std::string(kGpu) + "/iommu_group/type", "identity\n");
  EXPECT_FALSE(read().iommu_translates.value());
  tree_.remove(std::string(kGpu) + "/iommu_group/type");
  EXPECT_THAT(read().iommu_translates.missing().detail, HasSubstr("kernel does not report"));
}

TEST_F(ReadSlot, ABridgeThatMayNotBeReadIsMissing) {
  tree_.write("sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/config", std::string(64, '\0'));
  EXPECT_THAT(read().acs_redirects.missing().detail, HasSubstr("only root"));
}

TEST_F(ReadSlot, AGpuThatTheKernelDoesNotHave) {
  const GpuSlot slot = read("0000:99:00.0");
  EXPECT_THAT(slot.bound_driver.missing().detail, HasSubstr("no such PCI device"));
  EXPECT_FALSE(slot.acs_redirects.has_value());
}

}  // namespace
}  // namespace remuda::doctor
