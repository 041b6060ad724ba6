#include "train/step_tail.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

template <typename T>
StepTail sum_of(const std::vector<StepTail>& tails) {
  const int ranks = int(tails.size());
  std::vector<T> total(StepTail::elements(ranks)), one(total.size());
  for (const auto& tail : tails) {
    write(tail, std::span<T>(one));
    for (size_t i = 0; i < total.size(); ++i) total[i] += one[i];
  }
  return read(std::span<const T>(total), ranks);
}

TEST(StepTail, SumOfAllRanksIsAGatherOfTheirSlots) {
  std::vector<StepTail> tails(3, StepTail(3));
  for (int rank = 0; rank < 3; ++rank) {
    tails[rank].weight = 10 * (rank + 1);
    tails[rank].loss_sum = 0.5;
    tails[rank].compute_s[rank] = 0.25 * (rank + 1);
  }
  tails[0].next_shares = {30, 20, 10};
  tails[2].status[2] = kOutOfMemory | kLeaving;
  const auto total = sum_of<double>(tails);
  EXPECT_EQ(total.weight, 60);
  EXPECT_EQ(total.loss_sum, 1.5);
  EXPECT_EQ(total.compute_s, (std::vector{0.25, 0.5, 0.75}));
  EXPECT_EQ(total.next_shares, (std::vector{30, 20, 10}));
  EXPECT_EQ(total.any_status(), kOutOfMemory | kLeaving);
  EXPECT_EQ(total.first_with(kOutOfMemory), 2);
  EXPECT_EQ(total.first_with(kOverflow), -1);
}

// A single float32 is exact only up to 2^24 = 16.8 million tokens.
TEST(StepTail, WeightsStayExactInFloatBeyondTwoToThe24) {
  std::vector<StepTail> tails(4, StepTail(4));
  for (auto& tail : tails) tail.weight = 1'000'000'007;
  EXPECT_EQ(sum_of<float>(tails).weight, 4'000'000'028);
}

}  // namespace
}  // namespace remuda::train
