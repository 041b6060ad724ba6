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

TEST(Settings, FollowTheScheduleInBothGroups) {
  const job::TrainSpec spec{.learning_rate = 0.5, .schedule = job::Schedule::cosine, .weight_decay = 0.25};
  const auto settings = settings_of(spec, 50, 100);
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_DOUBLE_EQ(settings[0].learning_rate, 0.25);
  EXPECT_DOUBLE_EQ(settings[1].learning_rate, 0.25);
  EXPECT_EQ(settings[0].weight_decay, 0.25);
  EXPECT_EQ(settings[1].weight_decay, 0);
}

TEST(WarmUp, IsAFifthOfTheRunUnlessGiven) {
  EXPECT_EQ(warm_up_of({}, job::Compression::one_bit, 1000), 200);
  EXPECT_EQ(warm_up_of({}, job::Compression::one_bit, 3), 1) << "a variance needs a gradient";
  EXPECT_EQ(warm_up_of({}, job::Compression::powersgd, 1000), 100);
  for (const auto compression : {job::Compression::one_bit, job::Compression::powersgd})
    EXPECT_EQ(warm_up_of({.compression_after = 7}, compression, 1000), 7);
}

TEST(Groups, PartMatricesFromTheRestWhereTheJobSaysSo) {
  const std::vector parameters{torch::zeros({2, 3}), torch::zeros({3}), torch::zeros({1, 2, 2, 2})};
  EXPECT_EQ(groups_of({.decay = job::Decay::matrices}, parameters), (std::vector<size_t>{0, 1, 0}));
  EXPECT_EQ(groups_of({.decay = job::Decay::all}, parameters), (std::vector<size_t>{0, 0, 0}));
}

}  // namespace
}  // namespace remuda::train
