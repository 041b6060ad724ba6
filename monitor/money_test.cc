#include "monitor/money.h"

#include <gtest/gtest.h>

namespace remuda::monitor {
namespace {

/// An hour of an A100, of which a half was busy, at 360 W.
LeaseUse hour() {
  return {.job = 1,
          .device = "GPU-1",
          .user = "ana",
          .model = "NVIDIA A100-SXM4-40GB",
          .held_s = 3600,
          .busy_s = 1800,
          .busy_known_s = 3600,
          .energy_joules = 360 * 3600,
          .energy_known_s = 3600};
}
const std::vector<policy::Tariff> kTariffs = {{.model = "*a100*", .hour = 2, .kwh = 0.5},
                                              {.model = "*H100*", .hour = 4}};

TEST(Money, IsForHoursAndForEnergy) {
  const Money money = money_of(hour(), kTariffs);
  EXPECT_DOUBLE_EQ(money.cost.value, 2 + 0.36 * 0.5);
  EXPECT_DOUBLE_EQ(money.wasted.value, 1);
  EXPECT_TRUE(money.cost.is_known && money.cost.is_complete);
  EXPECT_EQ(money_text(money.cost), "2.18");
}

TEST(Money, OfAPartOfADeviceIsAPartOfItsHours) {
  LeaseUse half = hour();
  half.share = 0.5;
  EXPECT_DOUBLE_EQ(money_of(half, kTariffs).wasted.value, 0.5);
}

TEST(Money, ThatIsNotKnownIsNotZero) {
  LeaseUse use = hour();
  use.energy_known_s = 1800;
  const Money partly = money_of(use, kTariffs);
  EXPECT_EQ(money_text(partly.cost), ">= 2.18");
  EXPECT_EQ(money_text(partly.wasted), "1.00") << "hours have no energy";
  use.model = "Tesla T4";
  const Money none = money_of(use, kTariffs);
  EXPECT_EQ(money_text(none.cost), "-");
  use.model = "";  // as an older remuda has kept it
  EXPECT_FALSE(money_of(use, kTariffs).cost.is_known);
  EXPECT_FALSE(money_of(use, {}).cost.is_known);
  Money sum = money_of(hour(), kTariffs);
  sum.add(none);
  EXPECT_EQ(money_text(sum.cost), ">= 2.18");
}

TEST(Money, IsNotSaidToBeUnwastedWhereNothingIsKnown) {
  LeaseUse use = hour();
  use.busy_known_s = 2000;
  EXPECT_EQ(money_text(money_of(use, kTariffs).wasted), ">= 0.11");
  EXPECT_EQ(money_text(money_of(use, kTariffs).cost), "2.18");
  use.busy_s = use.busy_known_s = 0;
  EXPECT_EQ(money_text(money_of(use, kTariffs).wasted), "-");
  EXPECT_EQ(money_text(money_of(hour(), {{.model = "", .kwh = 1}}).wasted), "-") << "hours cost nothing";
}

TEST(Money, TheFirstTariffThatFitsCounts) {
  const std::vector<policy::Tariff> tariffs = {{.model = "*A100*", .hour = 2}, {.model = "", .hour = 1}};
  EXPECT_EQ(tariff_of(tariffs, "NVIDIA A100")->hour, 2);
  EXPECT_EQ(tariff_of(tariffs, "other")->hour, 1);
  EXPECT_EQ(tariff_of(tariffs, "")->hour, 1) << "one for all is for what is not known, too";
  EXPECT_EQ(tariff_of(kTariffs, "other"), nullptr);
}

}  // namespace
}  // namespace remuda::monitor
