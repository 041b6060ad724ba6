#include "probe/cpu/probe.h"

#include <gmock/gmock.h>

namespace remuda {
namespace {

using ::testing::HasSubstr;

TEST(CpuProbe, IsViableEverywhere) {
  const auto probe = make_cpu_probe(0);
  EXPECT_STREQ(probe->name(), "cpu");
  EXPECT_EQ(probe->unviable(), std::nullopt);
}

TEST(CpuProbe, NumbersItsDevices) {
  const auto devices = make_cpu_probe(0)->devices();
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_FALSE(devices->empty());
  for (size_t i = 0; i < devices->size(); ++i) {
    EXPECT_EQ((*devices)[i].id, "cpu:" + std::to_string(i));
    EXPECT_EQ((*devices)[i].kind, DeviceKind::cpu);
    EXPECT_FALSE((*devices)[i].cores.empty());
    EXPECT_TRUE((*devices)[i].numa_node.has_value());
  }
}

TEST(CpuProbe, CanTakeTheMachineAsOneDevice) {
  const auto devices = make_cpu_probe(1)->devices();
  ASSERT_TRUE(devices) << devices.error().message;
  EXPECT_EQ(devices->size(), 1u);
}

TEST(CpuProbe, RefusesMoreDevicesThanCores) {
  const auto devices = make_cpu_probe(100'000)->devices();
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().kind, ErrorKind::usage);
  EXPECT_THAT(devices.error().message, HasSubstr("at most"));
}

}  // namespace
}  // namespace remuda
