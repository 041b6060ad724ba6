#include "place/remainder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace remuda::place {
namespace {

topology::Speeds pairs_of_four() {
  topology::Speeds speeds(4, std::vector<double>(4, 10));
  speeds[0][1] = speeds[1][0] = speeds[2][3] = speeds[3][2] = 100;
  return speeds;
}

topology::Speeds arbitrary_speeds(size_t n) {
  topology::Speeds speeds(n, std::vector<double>(n, 0));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) speeds[i][j] = speeds[j][i] = *rc::gen::element(0.0, 10.0, 25.0, 50.0);
  return speeds;
}

TEST(Remainder, WorthIsThePairTheFourAndEveryLink) {
  const Remainder remainder(pairs_of_four());
  EXPECT_DOUBLE_EQ(remainder.worth(0b1111), 1 + 1 + 0.5 * 4);
  EXPECT_DOUBLE_EQ(remainder.worth(0b0011), 1 + 0 + 0.5 * 2);
  EXPECT_DOUBLE_EQ(remainder.worth(0b0101), 0.1 + 0 + 0.5 * 0.2);
  EXPECT_EQ(remainder.worth(0b0001), 0);
  EXPECT_EQ(remainder.worth(0), 0);
}

TEST(Remainder, NamesThePairAndTheFour) {
  const Remainder remainder(pairs_of_four());
  EXPECT_EQ(remainder.best_pair(0b1110).value().devices, 0b1100u);
  EXPECT_EQ(remainder.best_pair(0b1110).value().gbps, 100);
  EXPECT_EQ(remainder.best_four(0b1111).value().gbps, 10);
  EXPECT_FALSE(remainder.best_pair(0b0100));
  EXPECT_FALSE(remainder.best_four(0b0111));
}

TEST(Remainder, IsNothingWhereNoLinkIsKnown) {
  const Remainder remainder(topology::Speeds(4, std::vector<double>(4, 0)));
  EXPECT_EQ(remainder.worth(0b1111), 0);
  EXPECT_FALSE(remainder.best_pair(0b1111));
  EXPECT_FALSE(remainder.best_four(0b1111));
}

RC_GTEST_PROP(Remainder, PairAndFourAreThoseOfTheRingTable, ()) {
  const auto n = *rc::gen::inRange<size_t>(2, 8);
  const topology::Speeds speeds = arbitrary_speeds(n);
  const Remainder remainder(speeds);
  const topology::RingTable rings(speeds);
  const auto free = *rc::gen::inRange<Remainder::Mask>(0, Remainder::Mask{1} << n);
  double pair = 0, four = 0;
  for (Remainder::Mask set = free; set != 0; set = (set - 1) & free) {
    if (std::popcount(set) == 2) pair = std::max(pair, rings.gbps(set));
    if (std::popcount(set) == 4) four = std::max(four, rings.gbps(set));
  }
  RC_ASSERT(remainder.best_pair(free).value_or(Remainder::Group{}).gbps == pair);
  RC_ASSERT(remainder.best_four(free).value_or(Remainder::Group{}).gbps == four);
}

RC_GTEST_PROP(Remainder, WorthMayStopOnlyBelowWhatIsEnough, ()) {
  const double enough = *rc::gen::inRange(-10, 500) / 100.0;
  const auto n = *rc::gen::inRange<size_t>(2, 8);
  const Remainder remainder(arbitrary_speeds(n));
  const auto free = *rc::gen::inRange<Remainder::Mask>(0, Remainder::Mask{1} << n);
  const double worth = remainder.worth(free), above = remainder.worth_above(enough, free);
  RC_ASSERT(above == worth || (above <= enough && worth <= enough));
}

}  // namespace
}  // namespace remuda::place
