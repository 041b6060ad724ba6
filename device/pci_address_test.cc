#include "device/pci_address.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

TEST(PciAddress, HasOneSpelling) {
  for (const char* spelling : {"0000:27:00.0", "00000000:27:00.0", "27:00.0", "0:27:0.0"})
    EXPECT_EQ(pci_address(spelling), "0000:27:00.0") << spelling;
  EXPECT_EQ(pci_address("0000:AF:1F.7"), "0000:af:1f.7");
}

TEST(PciAddress, KeepsAWideDomain) { EXPECT_EQ(pci_address("00012345:01:00.0"), "00012345:01:00.0"); }

TEST(PciAddress, IsNothingElse) {
  for (const char* other :
       {"", "gpu:0", "27:00", "0000:27:00", "0000:27:20.0", "0000:27:00.8", "0000:127:00.0", "-1:27:00.0",
        "0000:27:00.0 ", "0x27:00.0", "27:00.", "123456789:27:00.0", "::.", "0000:27:00.00"})
    EXPECT_FALSE(pci_address(other)) << other;
}

}  // namespace
}  // namespace remuda
