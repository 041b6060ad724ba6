#include "probe/pci/names.h"

#include <gmock/gmock.h>
#include <sstream>

namespace remuda::probe::pci {
namespace {

constexpr const char* kList =
    "#\n#\tList of PCI ID's\n\n"
    "1002  Advanced Micro Devices, Inc. [AMD/ATI]\n"
    "\t740f  Aldebaran/MI200 [Instinct MI210]\n"
    "10de  NVIDIA Corporation\n"
    "\t0020  NV4 [Riva TNT]\n"
    "\t\t2230 1  a subsystem, not a device\n"
    "\t2230  GA102GL [RTX A6000]\n"
    "\t\t10de 1459  RTX A6000\n"
    "\t2231  GA102GL\n"
    "\t2232  GA102\x1b]0;x\x07 []\n"
    "8086  Intel Corporation\n"
    "\t2233  Not by the maker asked for\n";

std::optional<std::string> name(const std::string& list, uint16_t vendor, uint16_t device) {
  std::istringstream stream(list);
  return find_name(stream, vendor, device);
}

TEST(FindName, PrefersWhatStandsInBrackets) {
  EXPECT_EQ(name(kList, 0x10de, 0x2230), "RTX A6000");
  EXPECT_EQ(name(kList, 0x1002, 0x740f), "Instinct MI210");
  EXPECT_EQ(name(kList, 0x10de, 0x2231), "GA102GL");
}

TEST(FindName, KeepsControlCharactersFromTheTerminal) { EXPECT_EQ(name(kList, 0x10de, 0x2232), "GA102?]0;x? []"); }

TEST(FindName, KnowsNoOtherVendorsDevices) {
  EXPECT_EQ(name(kList, 0x10de, 0x2233), std::nullopt);
  EXPECT_EQ(name(kList, 0x10de, 0x10de), std::nullopt);
  EXPECT_EQ(name(kList, 0x1234, 0x0001), std::nullopt);
}

TEST(FindName, EndsWithAListThatIsNone) {
  EXPECT_EQ(name("", 0x10de, 0x2230), std::nullopt);
  EXPECT_EQ(name("10de", 0x10de, 0x2230), std::nullopt);
  EXPECT_EQ(name("10de  \n\t2230", 0x10de, 0x2230), std::nullopt);
  EXPECT_EQ(name(std::string(5000, 'x') + "\n" + kList, 0x10de, 0x2230), std::nullopt);
}

}  // namespace
}  // namespace remuda::probe::pci
