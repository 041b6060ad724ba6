#include "topology/byte_lanes.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace remuda::topology {
namespace {

ByteLanes counted_from(uint8_t first) {
  ByteLanes lanes{};
  for (size_t lane = 0; lane < ByteLanes::kCount; ++lane) lanes.set(lane, static_cast<uint8_t>(first + lane));
  return lanes;
}

template <size_t Bit>
void expect_moved() {
  const ByteLanes moved = moved_to_sets_with<Bit>(counted_from(1));
  for (size_t set = 0; set < ByteLanes::kCount; ++set)
    EXPECT_EQ(moved[set], set >> Bit & 1 ? 1 + (set ^ size_t{1} << Bit) : 0) << "element " << Bit << ", set " << set;
}

TEST(ByteLanes, MoveToTheSetsWithAnElement) {
  expect_moved<0>();
  expect_moved<1>();
  expect_moved<2>();
  expect_moved<3>();
}

TEST(ByteLanes, CompareAsNumbersWithoutSign) {
  const ByteLanes low = counted_from(120), high = ByteLanes::all(130);
  for (size_t lane = 0; lane < ByteLanes::kCount; ++lane) {
    EXPECT_EQ(min(low, high)[lane], std::min<int>(120 + static_cast<int>(lane), 130));
    EXPECT_EQ(max(low, high)[lane], std::max<int>(120 + static_cast<int>(lane), 130));
    EXPECT_EQ((low & ByteLanes::all(1))[lane], lane & 1);
  }
}

}  // namespace
}  // namespace remuda::topology
