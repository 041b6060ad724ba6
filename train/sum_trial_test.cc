#include "train/sum_trial.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

bool are_ones(const torch::Tensor& sums) { return sums.eq(1).all().item<bool>(); }

TEST(SumTrial, HasValuesThatAllTypesHaveAndWhoseSumsAreOneInAnyOrder) {
  const torch::Tensor values = sum_trial_values();
  EXPECT_EQ(values.sizes(), (std::vector<int64_t>{kSumTrialRows, kSumTrialColumns}));
  for (const auto type : {torch::kBFloat16, torch::kHalf}) EXPECT_TRUE(values.to(type).to(torch::kFloat).equal(values));
  EXPECT_TRUE(are_ones(values.sum(0)));
  EXPECT_TRUE(are_ones(values.cumsum(0)[-1])) << "one after the other";
  EXPECT_TRUE(are_ones(values.flip(0).cumsum(0)[-1]));
  EXPECT_GE(values.abs().min().item<float>(), 1);
}

/// What a library makes of the sums that cuts them into so many pieces.
torch::Tensor pieces_of_sums(int64_t count) {
  std::vector<torch::Tensor> pieces;
  for (const torch::Tensor& piece : sum_trial_values().tensor_split(count)) pieces.push_back(piece.sum(0));
  return torch::stack(pieces);
}

TEST(SumTrial, TellsSumsWhosePiecesAreRounded) {
  for (const auto type : {torch::kBFloat16, torch::kHalf})
    for (const int64_t count : {2, 3, 4, 5, 6, 8, 12, 16, 20, 32, 48, 64, 100, 128, 256}) {
      const torch::Tensor pieces = pieces_of_sums(count), rounded = pieces.to(type);
      EXPECT_TRUE(are_ones(pieces.sum(0))) << "in float32, cut into " << count;
      EXPECT_FALSE(are_ones(rounded.to(torch::kFloat).sum(0)))
          << type << ": pieces of 16 bits, added up in float32, cut into " << count;
      torch::Tensor sum = torch::zeros({kSumTrialColumns}, type);
      for (int64_t i = 0; i < count; ++i) sum = sum + rounded[i];
      EXPECT_FALSE(are_ones(sum)) << type << ": all in 16 bits, cut into " << count;
    }
}

/// The same with ones, as the trial once was, tells nothing: why it is made of these values.
TEST(SumTrial, WouldNotTellThemByOnes) {
  for (int64_t count = 2; count <= 256; count *= 2) {
    const torch::Tensor pieces = torch::ones({count, kSumTrialRows / count}).sum(1).to(torch::kBFloat16);
    EXPECT_EQ(pieces.to(torch::kFloat).sum().item<float>(), kSumTrialRows);
  }
}

TEST(SumTrial, PassesWhereSumsAreFloat32) {
  EXPECT_TRUE(adds_up_in_float32(torch::kCPU, torch::kFloat));
  EXPECT_TRUE(adds_up_in_float32(torch::kCPU, torch::kDouble));
}

}  // namespace
}  // namespace remuda::train
