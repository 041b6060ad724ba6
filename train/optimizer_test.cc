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

// PyTorch's documented rules: SGD adds weight_decay * value to the gradient; AdamW (Loshchilov and Hutter 2019) takes
// rate * weight_decay * value off the value by itself.
TEST(Optimizers, DecayWeightsAndKeepMomentum) {
  const auto after = [](const job::TrainSpec& spec, int steps) {
    auto values = torch::full({1}, 2.0, torch::dtype(torch::kDouble).requires_grad(true));
    values.mutable_grad() = torch::ones({1}, torch::kDouble);
    const auto optimizer = make_optimizer(spec, values);
    for (int i = 0; i < steps; ++i) optimizer->step();
    return values.item<double>();
  };
  job::TrainSpec sgd{.learning_rate = 0.2, .momentum = 0};
  EXPECT_NEAR(after(sgd, 2), 2 - 2 * 0.2, 1e-12);
  sgd.learning_rate = 0.1;
  sgd.momentum = 0.5;
  EXPECT_NEAR(after(sgd, 2), 2 - 0.1 - 0.1 * 1.5, 1e-12);
  sgd = {.learning_rate = 0.1, .momentum = 0, .weight_decay = 0.25};
  EXPECT_NEAR(after(sgd, 1), 2 - 0.1 * (1 + 0.25 * 2), 1e-12);
  const job::TrainSpec adamw{.optimizer = job::Optimizer::adamw, .learning_rate = 0.1, .weight_decay = 0.25};
  EXPECT_NEAR(after(adamw, 1), 2 - 0.1 * 0.25 * 2 - 0.1, 1e-6);
}

}  // namespace
}  // namespace remuda::train
