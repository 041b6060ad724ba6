#include "place/capability.h"

#include <gmock/gmock.h>

namespace remuda::place {
namespace {

using testing::HasSubstr;

Device of_capability(const char* compute_capability) {
  Device device{.kind = DeviceKind::gpu};
  device.architecture = "some";
  device.compute_capability = compute_capability;
  return device;
}

Device of_target(const char* target) {
  Device device{.kind = DeviceKind::gpu};
  device.architecture = target;
  return device;
}

bool has(const char* asked, const Device& device) { return Capability::parse(asked).value().of(device).value(); }

TEST(Capability, APrecisionComesWithAGeneration) {
  EXPECT_FALSE(has("bf16", of_capability("7.5")));
  EXPECT_TRUE(has("bf16", of_capability("8.0")));
  EXPECT_TRUE(has("FP16", of_capability("7.0")));
  EXPECT_FALSE(has("fp8", of_capability("8.6")));
  EXPECT_TRUE(has("fp8", of_capability("8.9")));
  EXPECT_FALSE(has("fp4", of_capability("9.0")));
  EXPECT_TRUE(has("fp4", of_capability("12.0")));
}

TEST(Capability, APrecisionComesWithATarget) {
  EXPECT_FALSE(has("bf16", of_target("gfx906")));
  EXPECT_TRUE(has("bf16", of_target("gfx90a")));
  EXPECT_TRUE(has("fp8", of_target("gfx942:sramecc+:xnack-")));
  EXPECT_FALSE(has("fp8", of_target("gfx90a")));
  EXPECT_TRUE(has("fp4", of_target("gfx950")));
}

TEST(Capability, AComputeCapabilityMeansThatOrNewer) {
  for (const char* asked : {"sm_80", "sm80", "SM_80", "8.0"}) {
    EXPECT_TRUE(has(asked, of_capability("8.6"))) << asked;
    EXPECT_FALSE(has(asked, of_capability("7.5"))) << asked;
    EXPECT_FALSE(has(asked, of_target("gfx942"))) << asked;
  }
  EXPECT_TRUE(has("sm_90a", of_capability("9.0")));
  EXPECT_TRUE(has("sm_120", of_capability("12.0")));
  EXPECT_FALSE(has("sm_120", of_capability("10.0")));
}

TEST(Capability, ATargetMeansThatVeryOne) {
  EXPECT_TRUE(has("gfx90a", of_target("gfx90a:xnack+")));
  EXPECT_FALSE(has("gfx90", of_target("gfx90a")));
  EXPECT_FALSE(has("gfx942", of_capability("9.0")));
}

TEST(Capability, IsUnknownWhereNothingIsRead) {
  const Reading<bool> unknown = Capability::parse("bf16").value().of(Device{.kind = DeviceKind::cpu});
  EXPECT_FALSE(unknown.has_value());
}

TEST(Capability, ListsWhatCanBeAskedFor) {
  for (const char* asked : {"", "bf17", "sm_", "sm_8", "sm_8x", "gfx", "gfx90*", "80", "sm_8.0"}) {
    const auto capability = Capability::parse(asked);
    ASSERT_FALSE(capability) << asked;
    EXPECT_EQ(capability.error().kind, ErrorKind::usage);
    EXPECT_THAT(capability.error().message, HasSubstr("sm_80"));
  }
}

}  // namespace
}  // namespace remuda::place
