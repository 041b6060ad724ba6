#include "train/optimizer.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

TEST(LearningRate, ConstantStays) {
  const job::TrainSpec spec{.learning_rate = 0.5};
  EXPECT_EQ(learning_rate(spec, 0, 100), 0.5);
  EXPECT_EQ(learning_rate(spec, 99, 100), 0.5);
}

TEST(LearningRate, CosineFallsFromTheTopToNothing) {
  const job::TrainSpec spec{.learning_rate = 0.5, .schedule = job::Schedule::cosine};
  EXPECT_EQ(learning_rate(spec, 0, 100), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(spec, 50, 100), 0.25);
  EXPECT_NEAR(learning_rate(spec, 99, 100), 0, 2e-4);
}

TEST(Optimizers, TakeTheRateTheyAreGiven) {
  for (const auto kind : {job::Optimizer::sgd, job::Optimizer::adamw}) {
    auto values = torch::ones({3}, torch::requires_grad());
    values.mutable_grad() = torch::ones({3});
    const auto optimizer = make_optimizer({.optimizer = kind, .learning_rate = 0.5}, values);
    set_learning_rate(*optimizer, 0);
    optimizer->step();
    EXPECT_TRUE(values.eq(1).all().item<bool>());
    set_learning_rate(*optimizer, 0.25);
    optimizer->step();
    EXPECT_NEAR(values[0].item<double>(), kind == job::Optimizer::sgd ? 1 - 0.25 * 1.9 : 0.75, 1e-6);
  }
}

}  // namespace
}  // namespace remuda::train
