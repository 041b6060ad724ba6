// What a DataParallel computes in, and the scale of the loss that goes with it.
#include "train/testing/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parallel/testing/ranks.h"

namespace remuda::parallel {
namespace {

using namespace testing;

constexpr bool kHasFloat16 = TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4);
constexpr const char* kWhyNot = "a CPU computes in float16 from libtorch 2.4 on, and this is " TORCH_VERSION;

Options options_with(Precision precision) {
  Options options;
  options.precision = precision;
  return options;
}

/// backward() over `rows` samples of ones, whose gradient is `rows` in each weight.
void backward_over(DataParallel& parallel, torch::nn::Linear& model, int64_t rows) {
  const auto scores = [&] {
    const Autocast autocast(parallel);
    return model->forward(torch::ones({rows, 3}));
  }();
  parallel.backward(scores.to(torch::kFloat).sum());
}

TEST(DataParallel, ComputesInItsPrecisionAndKeepsFloat32) {
  if (!train::testing::cpu_has_bf16()) GTEST_SKIP() << train::testing::kNoBf16;
  auto model = make_linear();
  Options options;
  options.precision = Precision::bf16;
  DataParallel parallel(alone(), *model, options);
  EXPECT_EQ(parallel.precision(), "bf16");
  const auto inputs = torch::ones({2, 3});
  torch::Tensor scores;
  parallel.begin(2);
  {
    const Autocast autocast(parallel);
    scores = model->forward(inputs);
  }
  EXPECT_EQ(scores.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(model->forward(inputs).scalar_type(), torch::kFloat);
  parallel.backward(scores.to(torch::kFloat).sum());
  EXPECT_TRUE(parallel.step(0.1).applied);
  EXPECT_TRUE(torch::allclose(model->weight, torch::full({1, 3}, 0.4)));
}

TEST(Precision, ScalesNoLossOfFloat32AndBfloat16) {
  if (!train::testing::cpu_has_bf16()) GTEST_SKIP() << train::testing::kNoBf16;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    auto model = make_linear();
    DataParallel parallel(alone(), *model, options_with(precision));
    parallel.accumulate(4096);
    backward_over(parallel, model, 4096);
    EXPECT_TRUE(model->weight.grad().eq(4096).all().item<bool>());
  }
}

TEST(Precision, OfOneRankMayBeAnother) {
  if (!train::testing::cpu_has_bf16()) GTEST_SKIP() << train::testing::kNoBf16;
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model, options_with(group.rank() == 0 ? Precision::fp32 : Precision::bf16));
    EXPECT_EQ(parallel.precision(), group.rank() == 0 ? "float32" : "bf16");
    EXPECT_EQ(parallel.device_library(),
              "none: rank 0 is on a cpu device, for which there is no library of collectives");
    parallel.begin(64);
    backward_over(parallel, model, 64);
    EXPECT_TRUE(parallel.step(0.25).applied);
    EXPECT_TRUE(model->weight.eq(0.25).all().item<bool>());
  });
}

TEST(Precision, OfGradientsThatAreSentIsAnOptionOfItsOwn) {
  const auto weight_after_a_step = [](int ranks, Precision gradients) {
    float weight = 0;
    run_ranks(ranks, [&](const Group& group) {
      auto model = make_linear();
      Options options;
      options.gradients = gradients;
      DataParallel parallel(group, *model, options);
      parallel.begin(1);
      (model->weight.sum() * 1.001).backward();
      EXPECT_TRUE(parallel.step(0.25).applied);
      if (group.rank() == 0) weight = model->weight[0][1].item<float>();
    });
    return weight;
  };
  EXPECT_EQ(weight_after_a_step(2, Precision::bf16), 0.25f) << "1.001 is 1 in bfloat16";
  EXPECT_NE(weight_after_a_step(2, Precision::fp32), 0.25f);
  EXPECT_NE(weight_after_a_step(1, Precision::bf16), 0.25f) << "there is nobody to send it to";
}

TEST(Precision, OfFloat64IsFloat64) {
  auto model = make_linear();
  model->to(torch::kDouble);
  EXPECT_EQ(DataParallel(alone(), *model, options_with(Precision::automatic)).precision(), "float64");
  EXPECT_EQ(refusal([&] { DataParallel(alone(), *model, options_with(Precision::bf16)); }),
            "Options::precision is bf16, but the parameters are float64; it is for those of float32");
}

/// A sum of 16,384 losses times 65,536, the scale of a mean, would not be a number of float16.
TEST(Precision, Float16OverflowsInNoStepOfALargeBatch) {
  if (!kHasFloat16) GTEST_SKIP() << kWhyNot;
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model, options_with(Precision::fp16));
    for (int i = 0; i < 3; ++i) {
      const int64_t rows = group.rank() == 0 ? 6144 : 2048;
      parallel.accumulate(double(rows));
      backward_over(parallel, model, rows);
      parallel.begin(double(rows));
      backward_over(parallel, model, rows);
      EXPECT_TRUE(parallel.step(0.125).applied) << i;
    }
    EXPECT_TRUE(model->weight.eq(0.125).all().item<bool>()) << model->weight;
  });
}

TEST(Precision, Float16KeepsOneScaleForAllPassesOfAStep) {
  if (!kHasFloat16) GTEST_SKIP() << kWhyNot;
  auto model = make_linear();
  DataParallel parallel(alone(), *model, options_with(Precision::fp16));
  parallel.accumulate(1);
  backward_over(parallel, model, 1);
  parallel.begin(63);
  backward_over(parallel, model, 63);
  EXPECT_FALSE(parallel.step(0.25).applied) << "the first pass announced a much smaller batch";
  for (int i = 0; i < 2; ++i) {
    parallel.accumulate(1);
    backward_over(parallel, model, 1);
    parallel.begin(63);
    backward_over(parallel, model, 63);
    EXPECT_TRUE(parallel.step(0.125).applied);
  }
  EXPECT_TRUE(model->weight.eq(0.25).all().item<bool>()) << model->weight;
}

}  // namespace
}  // namespace remuda::parallel
