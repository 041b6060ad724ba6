#include "monitor/slot.h"

#include <gmock/gmock.h>

namespace remuda::monitor {
namespace {

TEST(Slot, HasWhatWasReadAndNothingInPlaceOfTheRest) {
  Status status;
  status.busy = 0.25;
  status.memory_used_bytes = int64_t{80} << 30;
  status.tensor_active = Missing{MissingReason::unsupported, "the card does not count it"};
  status.throttle = std::vector<std::string>{"idle", "display"};
  const Slot slot = slot_of(status);
  EXPECT_EQ(slot[Measure::busy], 0.25F);
  EXPECT_EQ(slot[Measure::memory_used_bytes], static_cast<float>(int64_t{80} << 30));
  EXPECT_TRUE(std::isnan(slot[Measure::tensor_active]));
  EXPECT_TRUE(std::isnan(slot[Measure::power_watts]));
  EXPECT_EQ(slot[Measure::throttled], 0.F) << "an idle device loses nothing by low clocks";
}

TEST(SlotSum, HasMeansAndPeaksOfWhatIsKnown) {
  Slot first, second, third;
  first[Measure::busy] = 0;
  second[Measure::busy] = 1;
  first[Measure::memory_used_bytes] = 7;
  third[Measure::memory_used_bytes] = 3;
  first[Measure::temperature_c] = -5;  // a peak may be below zero
  SlotSum sum;
  for (const Slot& slot : {first, second, third}) sum.add(slot);
  EXPECT_EQ(sum.slot()[Measure::busy], 0.5F) << "the third has no value, so it does not count";
  EXPECT_EQ(sum.slot()[Measure::memory_used_bytes], 7.F);
  EXPECT_EQ(sum.slot()[Measure::temperature_c], -5.F);
  EXPECT_TRUE(std::isnan(sum.slot()[Measure::power_watts]));
}

}  // namespace
}  // namespace remuda::monitor
