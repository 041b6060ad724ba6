#include "balance/state_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::balance {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kGiB = 1 << 30;

auto near(double value) { return DoubleNear(value, 1e-9); }

std::vector<double> shares(const std::vector<StateOwner>& ranks, const StateBytes& bytes = {8 * kGiB, 8 * kGiB}) {
  std::vector<double> parts = state_shares(ranks, bytes);
  double sum = 0;
  for (const double part : parts) sum += part;
  for (double& part : parts) part /= sum;
  return parts;
}

TEST(StateShares, RanksThatComputeOwnByTheirMemory) {
  EXPECT_THAT(shares({{Role::compute, 24 * kGiB}, {Role::compute, 8 * kGiB}}), ElementsAre(near(0.75), near(0.25)));
  EXPECT_THAT(shares({{Role::compute, 24 * kGiB}, {Role::compute, 0}}), ElementsAre(near(0.5), near(0.5)));
}

TEST(StateShares, ARankForStateOwnsAllThatFits) {
  EXPECT_THAT(shares({{Role::compute, 16 * kGiB}, {Role::state, 64 * kGiB}}), ElementsAre(0, near(1)));
  // 0.9 of 10 GiB, without the 8 that each rank holds, are an eighth of the 8 to own.
  EXPECT_THAT(shares({{Role::compute, 16 * kGiB}, {Role::state, 10 * kGiB}, {Role::compute, 48 * kGiB}}),
              ElementsAre(near(0.875 * 0.25), near(0.125), near(0.875 * 0.75)));
  EXPECT_THAT(shares({{Role::compute, 16 * kGiB}, {Role::state, 4 * kGiB}}), ElementsAre(near(1), 0));
}

TEST(StateShares, SeveralForStateShareWhatFits) {
  EXPECT_THAT(shares({{Role::state, 64 * kGiB}, {Role::compute, 16 * kGiB}, {Role::state, 0}}),
              ElementsAre(near(0.5), 0, near(0.5)));
}

TEST(StateShares, ARankThatPreprocessesOwnsNothing) {
  EXPECT_THAT(shares({{Role::preprocess, 64 * kGiB}, {Role::compute, 16 * kGiB}}), ElementsAre(0, near(1)));
}

}  // namespace
}  // namespace remuda::balance
