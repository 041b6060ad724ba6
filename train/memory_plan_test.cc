#include "train/memory_plan.h"

#include <gtest/gtest.h>

namespace remuda::train {
namespace {

TEST(MemoryPlan, TheLineIsThroughTheLargestSizes) {
  const MemoryNeed need = fit_memory({{1, 500}, {4, 510}, {25, 600}, {50, 700}, {100, 1000}});
  EXPECT_DOUBLE_EQ(need.per_sample, 400.0 / 75);
  EXPECT_NEAR(need.peak(100), 1000, 1e-9);
  EXPECT_NEAR(need.peak(25), 600, 1e-9);
  EXPECT_GE(need.peak(50), 700) << "no step takes more than is predicted, as the peak only bends upwards";
  EXPECT_DOUBLE_EQ(need.peak(1), 500) << "one sample takes what it was seen to take";
}

TEST(MemoryPlan, OneSizeIsAPeakForAllAndNoneIsNotKnown) {
  EXPECT_DOUBLE_EQ(fit_memory({{1, 500}}).peak(7), 500);
  EXPECT_EQ(fit_memory({}).known, 0);
  EXPECT_EQ(MemoryPlan(1, 1).peak(0, 10), std::nullopt);
}

MemoryPlan plan_with(double room, int pieces = 1) {
  MemoryPlan plan(2, pieces);
  plan.take({{.known = 1, .held = 100, .fixed = 20, .per_sample = 10, .least = 30, .room = room}, {}});
  return plan;
}

TEST(MemoryPlan, APartThatDoesNotFitIsCutUntilItDoes) {
  EXPECT_EQ(plan_with(1000).pieces(0, 64), 1);
  EXPECT_EQ(plan_with(760).pieces(0, 64), 1) << "just fits";
  EXPECT_EQ(plan_with(759).pieces(0, 64), 2);
  EXPECT_EQ(plan_with(200).pieces(0, 64), 8);
  EXPECT_EQ(plan_with(200).pieces(0, 8), 1);
  EXPECT_EQ(plan_with(90).pieces(0, 64), 64) << "nothing fits: single samples are tried";
  EXPECT_EQ(plan_with(0).pieces(0, 64), 1) << "room that is not known is no reason";
  EXPECT_EQ(plan_with(759).pieces(1, 64), 1) << "the other rank was not measured";
  EXPECT_EQ(plan_with(1000, 4).pieces(0, 2), 2);
  EXPECT_DOUBLE_EQ(*plan_with(200).peak(0, 64), 200) << "of what it is cut into";
}

TEST(MemoryPlan, FitsSaysWhetherPartsNeedNoCut) {
  EXPECT_TRUE(plan_with(760).fits({64, 500}));
  EXPECT_FALSE(plan_with(759).fits({64, 500}));
  EXPECT_TRUE(plan_with(759, 2).fits({64, 500})) << "as the job asks for pieces";
  EXPECT_TRUE(plan_with(90).fits({0, 500}));
}

TEST(MemoryPlan, RunningOutOfMemoryDoublesThePiecesDownToSingleSamples) {
  MemoryPlan plan = plan_with(400);
  EXPECT_EQ(plan.pieces(0, 50), 2);
  EXPECT_TRUE(plan.cut(0, 50));
  EXPECT_EQ(plan.pieces(0, 50), 4) << "the prediction was too low";
  EXPECT_TRUE(plan.cut(0, 5));
  EXPECT_EQ(plan.pieces(0, 50), 5);
  EXPECT_EQ(plan.pieces(0, 3), 3);
  EXPECT_FALSE(plan.cut(0, 3));
  EXPECT_FALSE(plan.cut(1, 0));
}

TEST(MemoryPlan, MicroBatchesAreNotCut) {
  MemoryPlan plan(1, 1, 16);
  plan.take({{.known = 1, .held = 100, .per_sample = 10, .room = 200}});
  EXPECT_EQ(plan.pieces(0, 64), 4);
  EXPECT_EQ(plan.pieces(0, 40), 3);
  EXPECT_EQ(plan.pieces(0, 0), 1);
  EXPECT_FALSE(plan.fits({64}));
  EXPECT_TRUE(plan.fits({8})) << "the end of an epoch";
  EXPECT_DOUBLE_EQ(*plan.peak(0, 64), 260);
  EXPECT_FALSE(plan.cut(0, 64));
  EXPECT_EQ(plan.pieces(0, 64), 4);
}

}  // namespace
}  // namespace remuda::train
