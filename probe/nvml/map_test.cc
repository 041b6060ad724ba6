#include "probe/nvml/map.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::probe::nvml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Why, HasAReasonForEachKindOfFailure) {
  EXPECT_EQ(why(kNotSupported, "power").reason, MissingReason::unsupported);
  EXPECT_EQ(why(kNoPermission, "power").reason, MissingReason::denied);
  EXPECT_EQ(why(kOperatingSystem, "GPU 1").reason, MissingReason::denied);
  EXPECT_EQ(why(kGpuIsLost, "GPU 1").reason, MissingReason::lost);
  EXPECT_EQ(why(kResetRequired, "GPU 1").reason, MissingReason::lost);
  EXPECT_EQ(why(kDriverNotLoaded, "NVML").reason, MissingReason::no_driver);
  EXPECT_EQ(why(kNotSupported, "power").detail, "power: not offered by this device");
  EXPECT_EQ(no_call("power").detail, "power: not offered by this version of the driver");
}

TEST(Why, NamesTheMismatchOfLibraryAndModule) {
  const Missing missing = why(kVersionMismatch, "NVML");
  EXPECT_EQ(missing.reason, MissingReason::no_driver);
  EXPECT_THAT(missing.detail, HasSubstr("different versions (error 18)"));
}

TEST(Why, TellsTheNumberOfAnErrorItDoesNotKnow) {
  EXPECT_EQ(why(777, "power").detail, "power: the driver answers with error 777");
  EXPECT_EQ(why(777, "power").reason, MissingReason::unsupported);
}

TEST(AddressOf, PrefersTextAndFallsBackToNumbers) {
  PciInfo pci{.domain = 0x1, .bus = 0xb7, .device = 0x1f};
  EXPECT_EQ(address_of(pci), "0001:b7:1f.0");
  std::strcpy(pci.bus_id, "00000000:27:00.0");
  EXPECT_EQ(address_of(pci), "0000:27:00.0");
  std::memset(pci.bus_id, '7', sizeof pci.bus_id);  // no end
  EXPECT_EQ(address_of(pci), "0001:b7:1f.0");
}

TEST(AddressOf, IsNothingForAnUnknownPlace) {
  EXPECT_EQ(address_of({}), std::nullopt);
  EXPECT_EQ(address_of({.domain = 0xFFFFFFFF, .bus = 0xFF, .device = 0xFF}), std::nullopt);
}

TEST(PathOf, KnowsEachLevelAndNoOther) {
  EXPECT_EQ(path_of(0).value(), Path::psb);
  EXPECT_EQ(path_of(10).value(), Path::pix);
  EXPECT_EQ(path_of(20).value(), Path::pxb);
  EXPECT_EQ(path_of(30).value(), Path::phb);
  EXPECT_EQ(path_of(40).value(), Path::node);
  EXPECT_EQ(path_of(50).value(), Path::sys);
  EXPECT_EQ(path_of(15).missing().detail, "common ancestor: the driver answers 15, which is not known");
}

TEST(PeerAccessOf, KnowsEachStatus) {
  EXPECT_EQ(peer_access_of(0), PeerAccess::ok);
  EXPECT_EQ(peer_access_of(1), PeerAccess::chipset);
  EXPECT_EQ(peer_access_of(2), PeerAccess::gpu);
  EXPECT_EQ(peer_access_of(3), PeerAccess::topology);
  EXPECT_EQ(peer_access_of(4), PeerAccess::disabled);
  EXPECT_EQ(peer_access_of(5), PeerAccess::unsupported);
  EXPECT_EQ(peer_access_of(6), PeerAccess::unknown);
  EXPECT_EQ(peer_access_of(4711), PeerAccess::unknown);
}

TEST(ComputeModeOf, BothExclusiveModesAreOne) {
  EXPECT_EQ(compute_mode_of(0).value(), ComputeMode::shared);
  EXPECT_EQ(compute_mode_of(1).value(), ComputeMode::exclusive);
  EXPECT_EQ(compute_mode_of(2).value(), ComputeMode::prohibited);
  EXPECT_EQ(compute_mode_of(3).value(), ComputeMode::exclusive);
  EXPECT_FALSE(compute_mode_of(4).has_value());
}

TEST(ThrottleWords, NameEachBitOnceAndTheRestTogether) {
  EXPECT_THAT(throttle_reasons_of(0), IsEmpty());
  EXPECT_THAT(throttle_reasons_of(0x24), ElementsAre("power_cap", "thermal"));
  EXPECT_THAT(throttle_reasons_of(0x1FF),
              ElementsAre("idle", "application_clocks", "power_cap", "hardware", "sync_boost", "thermal",
                          "hardware_thermal", "power_brake", "display"));
  EXPECT_THAT(throttle_reasons_of(0xF000), ElementsAre("other"));
}

TEST(RuntimeVersion, IsMajorAndMinor) {
  EXPECT_EQ(runtime_version_of(12040).value(), "12.4");
  EXPECT_EQ(runtime_version_of(11080).value(), "11.8");
  EXPECT_FALSE(runtime_version_of(0).has_value());
}

TEST(Architecture, IsKnownByNumberOrByCapability) {
  EXPECT_EQ(architecture_name(7u), "Ampere");
  EXPECT_EQ(architecture_name(10u), "Blackwell");
  EXPECT_EQ(architecture_name(0xFFFFFFFF), std::nullopt);
  EXPECT_EQ(architecture_name(Capability{7, 0}), "Volta");
  EXPECT_EQ(architecture_name(Capability{7, 5}), "Turing");
  EXPECT_EQ(architecture_name(Capability{8, 6}), "Ampere");
  EXPECT_EQ(architecture_name(Capability{8, 9}), "Ada");
  EXPECT_EQ(architecture_name(Capability{12, 0}), "Blackwell");
  EXPECT_EQ(architecture_name(Capability{13, 0}), std::nullopt);
  EXPECT_EQ(architecture_name(Capability{2, 0}), std::nullopt);
}

TEST(CoresPerMultiprocessor, GiveTheMultiprocessorsOfRealCards) {
  EXPECT_EQ(6912 / *cores_per_multiprocessor({8, 0}), 108);    // A100
  EXPECT_EQ(16896 / *cores_per_multiprocessor({9, 0}), 132);   // H100 SXM
  EXPECT_EQ(10752 / *cores_per_multiprocessor({8, 6}), 84);    // RTX A6000
  EXPECT_EQ(5120 / *cores_per_multiprocessor({7, 0}), 80);     // V100
  EXPECT_EQ(3584 / *cores_per_multiprocessor({6, 0}), 56);     // P100
  EXPECT_EQ(21760 / *cores_per_multiprocessor({12, 0}), 170);  // RTX 5090
  EXPECT_EQ(cores_per_multiprocessor({99, 0}), std::nullopt);
}

TEST(NvlinkGeneration, ComesFromTheChipAndElseFromTheNumber) {
  EXPECT_EQ(nvlink_generation(Capability{6, 0}, 1), 1);
  EXPECT_EQ(nvlink_generation(Capability{8, 0}, 5), 3);  // as A100s answer
  EXPECT_EQ(nvlink_generation(Capability{8, 6}, 6), 3);  // as RTX A6000s answer
  EXPECT_EQ(nvlink_generation(Capability{9, 0}, 6), 4);  // as the documentation says
  EXPECT_EQ(nvlink_generation(Capability{10, 0}, 0), 5);
  EXPECT_EQ(nvlink_generation(std::nullopt, 2), 2);
  EXPECT_EQ(nvlink_generation(std::nullopt, 5), 3);
  EXPECT_EQ(nvlink_generation(std::nullopt, 4), std::nullopt);  // 2.2 or 3.0
  EXPECT_EQ(nvlink_generation(std::nullopt, 6), std::nullopt);  // 3.1 or 4.0
  EXPECT_EQ(nvlink_generation(std::nullopt, 0), std::nullopt);
  EXPECT_EQ(nvlink_generation(std::nullopt, 4000), std::nullopt);
}

std::optional<std::string> profile(unsigned gpu, unsigned compute, uint64_t mib, int64_t card_mib) {
  return profile_of({.gpu_slices = gpu, .compute_slices = compute, .memory_mib = mib}, card_mib << 20);
}

TEST(Profile, IsNamedAsTheDriverNamesIt) {
  EXPECT_EQ(profile(1, 1, 4864, 40960), "1g.5gb");  // A100 40 GB
  EXPECT_EQ(profile(3, 3, 19968, 40960), "3g.20gb");
  EXPECT_EQ(profile(3, 1, 19968, 40960), "1c.3g.20gb");
  EXPECT_EQ(profile(1, 1, 9728, 81559), "1g.10gb");    // H100 80 GB
  EXPECT_EQ(profile(1, 1, 16384, 143771), "1g.18gb");  // H200
  EXPECT_EQ(profile(1, 1, 5952, 24576), "1g.6gb");     // A30
}

TEST(Profile, IsNothingWithoutSizes) {
  EXPECT_EQ(profile(0, 1, 4864, 40960), std::nullopt);
  EXPECT_EQ(profile(1, 1, 0, 40960), std::nullopt);
  EXPECT_EQ(profile(1, 1, 4864, 0), std::nullopt);
}

TEST(Map, ActionsToRecoverThatAreNotKnownAreActionsStill) {
  EXPECT_EQ(recovery_action_of(0), RecoveryAction::none);
  EXPECT_EQ(recovery_action_of(1), RecoveryAction::reset);
  EXPECT_EQ(recovery_action_of(4), RecoveryAction::drain_and_reset);
  EXPECT_EQ(recovery_action_of(5), RecoveryAction::other);
}

}  // namespace
}  // namespace remuda::probe::nvml
