#include "place/rates.h"

#include <gmock/gmock.h>

#include "place/testing/machine.h"

namespace remuda::place {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<const Device*> all(const Inventory& inventory) {
  std::vector<const Device*> devices;
  for (const Device& device : inventory.devices) devices.push_back(&device);
  return devices;
}

TEST(Rates, AreMeasuredWhereAllAre) {
  Inventory inventory = make_gpus(2);
  inventory.measured_devices = {{.id = "gpu:1", .gemm = {{"float32", 60}, {"float16", 5}}},
                                {.id = "gpu:0", .gemm = {{"float32", 20}}}};
  const Rates rates = rates_of(inventory, all(inventory));
  EXPECT_THAT(rates.values, ElementsAre(20, 60));
  EXPECT_EQ(rates.basis, "measured float32 matrix products");
  EXPECT_THAT(shares_of(rates), ElementsAre(DoubleEq(0.25), DoubleEq(0.75)));
}

TEST(Rates, AreElseTakenFromMultiprocessorsAndClock) {
  Inventory inventory = make_gpus(2);
  for (Device& gpu : inventory.devices) gpu.sm_clock_max_mhz = 1000;
  inventory.devices[0].multiprocessors = 100;
  inventory.devices[1].multiprocessors = 60;
  inventory.measured_devices = {{.id = "gpu:1", .gemm = {{"float32", 60}}}};
  const Rates rates = rates_of(inventory, all(inventory));
  EXPECT_THAT(rates.values, ElementsAre(100'000, 60'000));
  EXPECT_THAT(rates.basis, HasSubstr("clock"));
}

TEST(Rates, AreElseEqual) {
  const Inventory inventory = make_gpus(4);
  const Rates rates = rates_of(inventory, all(inventory));
  EXPECT_THAT(shares_of(rates), ElementsAre(0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT(rates.basis, HasSubstr("not known"));
}

}  // namespace
}  // namespace remuda::place
