#include "train/loss.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

TEST(LossSum, CrossEntropyIsASumOverSamples) {
  const auto scores = torch::tensor({{2.0, 0.0}, {0.0, 2.0}, {0.0, 0.0}});
  const auto target = torch::tensor({0, 0, 1}, torch::kLong);
  const auto loss = loss_sum(job::Loss::cross_entropy, scores, target, -1, true);
  // -log softmax: log(1 + e^-2), log(1 + e^2), log 2
  EXPECT_NEAR(loss.sum.item<double>(), 0.126928 + 2.126928 + 0.693147, 1e-5);
  EXPECT_EQ(loss.weight, 3);
  EXPECT_EQ(loss.correct, 1) << "a tie goes to the first class";
}

TEST(LossSum, PaddingCountsNowhere) {
  const auto scores = torch::zeros({2, 3, 4});
  const auto target = torch::tensor({{1, 9, 2}, {9, 9, 3}}, torch::kLong).clamp_max(3);
  const auto padded = torch::tensor({{1, 0, 2}, {0, 0, 3}}, torch::kLong);
  EXPECT_EQ(loss_sum(job::Loss::cross_entropy, scores, target, -1).weight, 6);
  const auto loss = loss_sum(job::Loss::cross_entropy, scores, padded, 0, true);
  EXPECT_EQ(loss.weight, 3);
  EXPECT_NEAR(loss.sum.item<double>(), 3 * std::log(4.0), 1e-5);
  EXPECT_EQ(loss.correct, 0) << "all scores tie, so class 0 is predicted, which only padding has";
}

TEST(LossSum, NllTakesLogProbabilities) {
  const auto scores = torch::tensor({{2.0, 0.0}, {0.0, 2.0}});
  const auto target = torch::tensor({0, 1}, torch::kLong);
  EXPECT_NEAR(loss_sum(job::Loss::nll, scores.log_softmax(1), target, -1).sum.item<double>(),
              loss_sum(job::Loss::cross_entropy, scores, target, -1).sum.item<double>(), 1e-6);
}

TEST(LossSum, MseComparesWithTheOneHotTarget) {
  const auto scores = torch::tensor({{1.0, 0.0}, {0.0, 0.0}});
  const auto target = torch::tensor({0, 1}, torch::kLong);
  const auto loss = loss_sum(job::Loss::mse, scores, target, -1);
  EXPECT_NEAR(loss.sum.item<double>(), 0.5, 1e-6);
  EXPECT_EQ(loss.weight, 2);
}

}  // namespace
}  // namespace remuda::train
