#include "share/sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::share {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

Device gpu(int index) {
  Device device{.id = "gpu:" + std::to_string(index), .kind = DeviceKind::gpu, .index = index};
  device.memory_bytes = 40 * kGiB;
  return device;
}

Device partition() {
  Device device{.id = "part", .kind = DeviceKind::partition, .index = 2, .parent = "gpu:0"};
  device.profile = "1g.5gb";
  return device;
}

Sharing how(const Device& device, const ShareWish& wish) { return decide_sharing(device, wish).how; }

TEST(Sharing, TakesThePartitionBeforeTheDaemonBeforeTimeSlices) {
  EXPECT_EQ(how(partition(), {.share = 0.1, .devices = 3, .no_daemon = "no", .other_holder = "bob"}),
            Sharing::partition);
  EXPECT_EQ(how(gpu(0), {.share = 0.3}), Sharing::daemon);
  EXPECT_EQ(how(gpu(0), {.share = 0.3, .no_daemon = "it is not there"}), Sharing::time_slices);
}

TEST(Sharing, IsNoQuestionForAWholeDevice) {
  EXPECT_EQ(how(gpu(0), {}), Sharing::whole);
  EXPECT_EQ(how(gpu(0), {.devices = 4, .no_daemon = "no"}), Sharing::whole);
  EXPECT_EQ(sharing_text({.devices = {gpu(0)}}, {{.device = "gpu:0"}}, 1), "");
}

TEST(Sharing, NeedsOneDeviceInAProcessAndOneUser) {
  const Shared many = decide_sharing(gpu(0), {.share = 0.3, .devices = 2});
  EXPECT_EQ(many.how, Sharing::time_slices);
  EXPECT_THAT(many.why, HasSubstr("--each"));
  const Shared others = decide_sharing(gpu(0), {.share = 0.3, .other_holder = "bob\x1b[2J"});
  EXPECT_EQ(others.how, Sharing::time_slices);
  EXPECT_THAT(others.why, HasSubstr("bob?[2J shares it already"));
}

TEST(Sharing, NeedsAKnownMemory) {
  Device device = gpu(0);
  device.memory_bytes = Reading<int64_t>{};
  EXPECT_EQ(how(device, {.share = 0.3}), Sharing::time_slices);
  EXPECT_EQ(shared_memory_bytes(device, 0.3), 0);
}

TEST(Sharing, GivesAllTogetherNoMoreMemoryThanThereIs) {
  EXPECT_EQ(shared_memory_bytes(gpu(0), 0.3), 12 * kGiB);
  Device odd = gpu(0);
  odd.memory_bytes = 1000003;
  EXPECT_EQ(shared_memory_bytes(odd, 0.5), 0) << "less than a MiB";
  for (const double share : {0.1, 0.2, 1.0 / 3, 0.5}) {
    odd.memory_bytes = 16'945'512'448;
    const int parts = static_cast<int>(1 / share + 1e-9);
    EXPECT_LE(parts * shared_memory_bytes(odd, share), odd.memory_bytes.value()) << share;
  }
}

TEST(Sharing, LimitsHardWhatTheHardwareOrTheDaemonLimits) {
  EXPECT_TRUE(limits_of(Sharing::partition).compute_hard && limits_of(Sharing::partition).memory_hard);
  EXPECT_TRUE(!limits_of(Sharing::daemon).compute_hard && limits_of(Sharing::daemon).memory_hard);
  EXPECT_TRUE(!limits_of(Sharing::time_slices).compute_hard && !limits_of(Sharing::time_slices).memory_hard);
}

TEST(Sharing, TellsWhichLimitsAreHard) {
  const Inventory inventory{.devices = {gpu(0), gpu(1), partition()}};
  const auto text = [&](const std::vector<Shared>& devices) { return sharing_text(inventory, devices, 0.3); };
  EXPECT_EQ(text({{"gpu:0", Sharing::daemon, ""}}),
            "30 % of gpu:0 through MPS: at most 12.0 GiB for each process (hard), 30 % of the multiprocessors "
            "(advisory)");
  EXPECT_EQ(text({{"gpu:0", Sharing::time_slices, "it is old"}, {"gpu:1", Sharing::time_slices, "it is old"}}),
            "30 % of gpu:0, 30 % of gpu:1 in time slices: the limits of memory and computing are advisory, nothing "
            "enforces them (it is old)");
  Device exclusive = gpu(0);
  exclusive.compute_mode = ComputeMode::exclusive;
  EXPECT_THAT(sharing_text({.devices = {exclusive}}, {{"gpu:0", Sharing::time_slices, "it is old"}}, 0.3),
              HasSubstr("(it is old), and its compute mode lets only one process in"));
  EXPECT_EQ(text({{"part", Sharing::partition, ""}}),
            "partition:2 (1g.5gb) with memory and multiprocessors of its own: both limits are hard");
  EXPECT_THAT(text({{"part", Sharing::partition, ""}, {"gpu:1", Sharing::daemon, ""}}),
              AllOf(HasSubstr("hard; 30 % of gpu:1"), HasSubstr("through MPS")));
}

}  // namespace
}  // namespace remuda::share
