#include "probe/pci/path.h"

#include <gmock/gmock.h>

namespace remuda::probe::pci {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kSwitch = "/sys/devices/pci0000:20/0000:20:01.1/0000:21:00.0/";

Place at(const std::string& path, std::optional<int> numa_node = 0) {
  Place place = place_of(path).value();
  place.numa_node = numa_node;
  return place;
}

Path between(const std::string& a, const std::string& b) { return path_between(at(a), at(b), false); }

TEST(PlaceOf, IsTheChainOfBridges) {
  const Place place = at(std::string(kSwitch) + "0000:22:00.0/0000:23:00.0");
  EXPECT_EQ(place.root, "pci0000:20");
  EXPECT_THAT(place.bridges, ElementsAre("0000:20:01.1", "0000:21:00.0", "0000:22:00.0"));
  EXPECT_THAT(at("/sys/devices/pci0000:00/0000:00:02.0").bridges, IsEmpty());
}

TEST(PlaceOf, StartsAtTheLastHostBridge) {
  const Place place = at("/sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0");
  EXPECT_EQ(place.root, "pci10000:e0");
  EXPECT_THAT(place.bridges, ElementsAre("10000:e0:06.0"));
}

TEST(PlaceOf, IsNothingOffTheBus) {
  for (const char* path :
       {"", "/", "/sys/devices/virtual/net/lo", "/sys/devices/pci0000:00", "/sys/devices/pci0000:00/x"})
    EXPECT_EQ(place_of(path), std::nullopt) << path;
}

TEST(PathBetween, OneSwitchIsPix) {
  const std::string one = kSwitch;
  EXPECT_EQ(between(one + "0000:22:00.0/0000:23:00.0", one + "0000:22:01.0/0000:24:00.0"), Path::pix);
  EXPECT_EQ(between(one + "0000:22:00.0/0000:23:00.0", one + "0000:22:00.0/0000:23:00.1"), Path::pix);
  EXPECT_EQ(between(one + "0000:22:00.0", one + "0000:22:01.0/0000:24:00.0"), Path::pix);
}

TEST(PathBetween, SeveralSwitchesArePxb) {
  const std::string one = kSwitch, below = "0000:22:00.0/0000:23:00.0/0000:24:00.0/";
  EXPECT_EQ(between(one + below + "0000:25:00.0", one + "0000:22:01.0/0000:30:00.0"), Path::pxb);
  EXPECT_EQ(between(one + "0000:22:01.0/0000:30:00.0", one + below + "0000:25:00.0"), Path::pxb);
}

TEST(PathBetween, OneHostBridgeIsPhb) {
  EXPECT_EQ(between(std::string(kSwitch) + "0000:22:00.0", "/sys/devices/pci0000:20/0000:20:03.1/0000:41:00.0"),
            Path::phb);
  EXPECT_EQ(between("/sys/devices/pci0000:00/0000:00:02.0", "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"),
            Path::phb);
}

TEST(PathBetween, DifferentHostBridgesAreByNumaNode) {
  const char* a = "/sys/devices/pci0000:20/0000:20:01.1/0000:21:00.0";
  const char* b = "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0";
  EXPECT_EQ(path_between(at(a, 1), at(b, 1), false), Path::node);
  EXPECT_EQ(path_between(at(a, 0), at(b, 1), false), Path::sys);
  EXPECT_EQ(path_between(at(a, 0), at(b, std::nullopt), false), Path::pcie);
  EXPECT_EQ(path_between(at(a, std::nullopt), at(b, std::nullopt), true), Path::node);
}

TEST(PathBetween, OneBusNumberInTwoDomainsIsNoHostBridge) {
  EXPECT_EQ(
      between("/sys/devices/pci0000:20/0000:20:01.1/0000:21:00.0", "/sys/devices/pci0001:20/0001:20:01.1/0001:21:00.0"),
      Path::node);
}

}  // namespace
}  // namespace remuda::probe::pci
