#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "balance/split.h"

namespace remuda::balance {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kGiB = 1 << 30;

auto near(double value) { return DoubleNear(value, 1e-9); }

std::vector<double> shares(const std::vector<StateOwner>& ranks, const StateBytes& bytes = {8 * kGiB, 8 * kGiB}) {
  std::vector<double> parts = state_parts(ranks, bytes);
  double sum = 0;
  for (const double part : parts) sum += part;
  for (double& part : parts) part /= sum;
  return parts;
}

TEST(SplitState, RanksThatComputeOwnByTheirMemory) {
  EXPECT_THAT(shares({{Role::compute, 48 * kGiB}, {Role::compute, 16 * kGiB}}), ElementsAre(near(0.75), near(0.25)));
  EXPECT_THAT(shares({{Role::compute, 24 * kGiB}, {Role::compute, 0}}), ElementsAre(near(0.5), near(0.5)));
}

TEST(SplitState, RanksThatComputeOwnByTheirSpeedAsFarAsTheirMemoryGoes) {
  EXPECT_THAT(shares({{Role::compute, 256 * kGiB, 0.9}, {Role::compute, 24 * kGiB, 0.1}}),
              ElementsAre(near(0.1), near(0.9)));
  // 0.9 of 12 GiB, without the 8 that each rank holds, are 0.35 of the 8 to own.
  EXPECT_THAT(
      shares({{Role::compute, 256 * kGiB, 0.9}, {Role::compute, 12 * kGiB, 0.1}, {Role::compute, 256 * kGiB, 0.45}}),
      ElementsAre(near(0.65 / 3), near(0.35), near(0.65 * 2 / 3)));
  EXPECT_THAT(shares({{Role::compute, 48 * kGiB, 0.9}, {Role::compute, 16 * kGiB}}),
              ElementsAre(near(0.75), near(0.25)))
      << "of one that is not known, its memory counts";
}

TEST(SplitState, NobodyOwnsMoreThanItMay) {
  EXPECT_THAT(shares({{Role::compute, 0, 1, 0.25}, {Role::compute, 0, 1}, {Role::compute, 0, 1, 0}}),
              ElementsAre(near(0.25), near(0.75), 0));
}

TEST(SplitState, ARankForStateOwnsAllThatFits) {
  EXPECT_THAT(shares({{Role::compute, 16 * kGiB}, {Role::state, 64 * kGiB}}), ElementsAre(0, near(1)));
  // 0.9 of 10 GiB, without the 8 that each rank holds, are an eighth of the 8 to own.
  EXPECT_THAT(shares({{Role::compute, 16 * kGiB}, {Role::state, 10 * kGiB}, {Role::compute, 48 * kGiB}}),
              ElementsAre(near(0.875 * 0.25), near(0.125), near(0.875 * 0.75)));
  EXPECT_THAT(shares({{Role::compute, 16 * kGiB}, {Role::state, 4 * kGiB}}), ElementsAre(near(1), 0));
}

TEST(SplitState, SeveralForStateShareWhatFits) {
  EXPECT_THAT(shares({{Role::state, 64 * kGiB}, {Role::compute, 16 * kGiB}, {Role::state, 0}}),
              ElementsAre(near(0.5), 0, near(0.5)));
}

TEST(SplitState, ARankThatPreprocessesOwnsNothing) {
  EXPECT_THAT(shares({{Role::preprocess, 64 * kGiB}, {Role::compute, 16 * kGiB}}), ElementsAre(0, near(1)));
}

}  // namespace
}  // namespace remuda::balance
