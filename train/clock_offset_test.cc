#include "train/clock_offset.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/clock.h"
#include "comm/testing/run_ranks.h"

namespace remuda::train {
namespace {

/// Barriers of two ranks, of which the second's clock is `ahead_s`; messages take `way_s` in each direction.
ClockOffset offset_with(double ahead_s, double way_s) {
  std::vector<BarrierTimes> first, second;
  for (int i = 0; i < 4; ++i) {
    const double one = 10 + i, other = one + (i % 2 == 0 ? 0.3 : 0);  // some barriers find one rank late
    const double all_here = std::max(one, other) + way_s;
    first.push_back({one, all_here});
    second.push_back({other + ahead_s, all_here + ahead_s});
  }
  return offset_between(second, first);
}

TEST(ClockOffset, IsKnownToTheTimeOfAMessage) {
  for (const double ahead_s : {0.0, 1234.5, -0.25}) {
    const ClockOffset found = offset_with(ahead_s, 0.001);
    EXPECT_NEAR(found.offset_s, -ahead_s, found.error_s) << ahead_s;
    EXPECT_NEAR(found.error_s, 0.001, 1e-9) << "the quickest barrier decides";
  }
}

TEST(ClockOffset, OfOneHostIsNone) {
  comm::run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto offset = clock_offset(communicator);
    ASSERT_TRUE(offset) << offset.error().message;
    EXPECT_EQ(offset->offset_s, 0);
    EXPECT_EQ(offset->error_s, 0);
  });
}

}  // namespace
}  // namespace remuda::train
