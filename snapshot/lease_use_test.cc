#include "snapshot/lease_use.h"

#include <gtest/gtest.h>

namespace remuda::snapshot {
namespace {

/// Samples at 0, 10, 20 and 30 s, of a GPU that may draw 100 W.
Inventory machine() {
  Inventory inventory;
  inventory.devices.resize(1);
  inventory.devices[0].id = "G";
  inventory.devices[0].power_limit_watts = 100.0;
  for (const double time_s : {0, 10, 20, 30}) {
    inventory.samples.push_back({time_s, {Status{}}});
    inventory.samples.back().devices[0].busy = time_s / 100;
  }
  inventory.samples[1].devices[0].power_watts = 50.0;
  return inventory;
}

TEST(SnapshotLeaseUse, ASampleHoldsUntilTheNext) {
  const Json use = use_between(machine(), "G", 5, 25);
  EXPECT_DOUBLE_EQ(use["busy_s"], 0 * 5 + 0.1 * 10 + 0.2 * 5);
  EXPECT_DOUBLE_EQ(use["busy_known_s"], 20);
  EXPECT_DOUBLE_EQ(use["effective_s"], 0.1 * 10);
  EXPECT_DOUBLE_EQ(use["effective_known_s"], 10) << "the others say nothing of power";
}

TEST(SnapshotLeaseUse, OutsideOfTheSamplesNothingIsKnown) {
  EXPECT_EQ(use_between(machine(), "G", 40, 90)["busy_known_s"], 0.0);
  EXPECT_EQ(use_between(machine(), "another", 0, 30)["busy_known_s"], 0.0);
}

}  // namespace
}  // namespace remuda::snapshot
