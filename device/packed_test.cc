#include "device/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "device/device.h"
#include "device/inventory.h"

namespace remuda {
namespace {

/// A value of each sort, and a reading of each.
Device device() {
  Device device{.id = "GPU-1", .kind = DeviceKind::gpu, .index = 3, .vendor = "NVIDIA"};
  device.memory_bytes = int64_t{48} << 30;
  device.cores = std::vector{0, 1, 7};
  device.ecc = true;
  device.persistence = false;
  device.status.busy = Reading<double>(0.1, 1700000000.5);
  device.status.power_watts = Missing{MissingReason::lost, "it fell off the bus"};
  device.status.throttle = std::vector<std::string>{};
  device.status.recovery_action = RecoveryAction::reset;
  device.status.processes =
      std::vector{Process{.pid = 7, .user = "Zo\u00eb", .command = "a\tb", .memory_bytes = -1}, Process{.pid = 8}};
  return device;
}

TEST(Packed, ReadsBackAsItWasWritten) {
  const std::string line = packed::write(device());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(packed::read<Device>(line), device());
  EXPECT_EQ(packed::read<Device>(packed::write(Device())), Device());
}

TEST(Packed, ATextCannotEndAValue) {
  Device hostile;
  hostile.id = "a\x1f\nb\xff";
  EXPECT_EQ(packed::read<Device>(packed::write(hostile))->id, "a??b?");
}

TEST(Packed, WhatIsNoStructIsRefused) {
  const std::string line = packed::write(device());
  for (size_t length = 0; length < line.size(); ++length)
    EXPECT_FALSE(packed::read<Device>(line.substr(0, length))) << length;
  EXPECT_FALSE(packed::read<Device>(line + "more"));
  for (size_t i = 0; i < line.size(); ++i) {
    std::string other = line;
    for (const char byte : {'\x1f', '9', '\xff', '\0', '-'}) {
      other[i] = byte;
      const auto read = packed::read<Device>(other);
      if (read) {
        EXPECT_EQ(packed::read<Device>(packed::write(*read)), read);
      }
    }
  }
}

TEST(Packed, NumbersAndListsAreBounded) {
  EXPECT_FALSE(
      packed::read<std::vector<int>>("99999999999\x1f"
                                     "1\x1f"));
  EXPECT_FALSE(
      packed::read<std::vector<int>>("1000\x1f"
                                     "1\x1f"));
  EXPECT_FALSE(packed::read<Reading<double>>(packed::write(Reading<double>(std::numeric_limits<double>::infinity()))));
  EXPECT_FALSE(packed::read<int>("4294967296\x1f"));
  EXPECT_FALSE(packed::read<std::string>(std::string(fields::kLongestText + 1, 'a') + packed::kEnd));
}

}  // namespace
}  // namespace remuda
