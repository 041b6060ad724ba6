#include "probe/cpu/probe.h"

#include <gmock/gmock.h>

namespace remuda::probe {
namespace {

using ::testing::HasSubstr;

TEST(CpuProbe, IsViableEverywhere) {
  const auto probe = make_cpu_probe(0);
  EXPECT_STREQ(probe->name(), "cpu");
  EXPECT_EQ(probe->unviable(), std::nullopt);
}

TEST(CpuProbe, NumbersItsDevices) {
  const auto found = make_cpu_probe(0)->find();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_FALSE(found->devices.empty());
  for (size_t i = 0; i < found->devices.size(); ++i) {
    const Device& device = found->devices[i];
    EXPECT_EQ(device.id, "cpu:" + std::to_string(i));
    EXPECT_EQ(device.kind, DeviceKind::cpu);
    EXPECT_FALSE(device.cores.value_or({}).empty());
    EXPECT_TRUE(device.numa_node.has_value());
  }
}

TEST(CpuProbe, CanTakeTheMachineAsOneDevice) {
  const auto found = make_cpu_probe(1)->find();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->devices.size(), 1u);
}

TEST(CpuProbe, RefusesMoreDevicesThanCores) {
  const auto found = make_cpu_probe(100'000)->find();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::usage);
  EXPECT_THAT(found.error().message, HasSubstr("at most"));
}

}  // namespace
}  // namespace remuda::probe
