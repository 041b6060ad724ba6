#include "train/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/parallel.h"
#include "train/testing/precision.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;
const torch::Device kStandin(torch::kXPU, 2);
/// The stand-in for an accelerator computes with the CPU's kernels.
const bool kHasBf16 = testing::cpu_has_bf16();

TEST(ComputeType, IsWhatWasAskedForWhereTheDeviceCan) {
  using job::Precision;
  EXPECT_EQ(compute_type(Precision::fp32, torch::kCPU), torch::kFloat);
  EXPECT_EQ(compute_type(Precision::bf16, torch::kCPU), kHasBf16 ? torch::kBFloat16 : torch::kFloat);
  EXPECT_EQ(compute_type(Precision::fp16, torch::kCPU), kTorchVersion >= 204 ? torch::kHalf : torch::kFloat);
  EXPECT_EQ(compute_type(Precision::automatic, torch::kCPU), torch::kFloat);
  EXPECT_EQ(compute_type(Precision::automatic, kStandin), kHasBf16 ? torch::kBFloat16 : torch::kFloat);
  EXPECT_EQ(compute_type(Precision::automatic, kStandin, torch::kDouble), torch::kDouble);
  EXPECT_EQ(compute_type(Precision::fp32, kStandin), torch::kFloat);
  EXPECT_EQ(compute_type(Precision::bf16, torch::kMeta), torch::kFloat) << "libtorch has no autocast for it";
}

/// The hardware of the device itself counts, not that of the first one.
TEST(ComputeType, IsThatOfOneOfSeveralUnlikeDevices) {
  testing::configure_standin(0, {.capability = 90});
  testing::configure_standin(2, {.capability = 61});
  EXPECT_EQ(compute_type(job::Precision::automatic, torch::Device(torch::kXPU, 2)), torch::kFloat);
  EXPECT_EQ(compute_type(job::Precision::automatic, torch::Device(torch::kXPU, 0)),
            kHasBf16 ? torch::kBFloat16 : torch::kFloat);
  testing::configure_standin(0, {.capability = 61});
  testing::configure_standin(2, {.capability = 90});
  EXPECT_EQ(compute_type(job::Precision::automatic, kStandin), kHasBf16 ? torch::kBFloat16 : torch::kFloat);
  for (const int device : {0, 2}) testing::configure_standin(device, {});
}

TEST(Autocast, ComputesInItsTypeWhileItLives) {
  for (const torch::Device device : {torch::Device(torch::kCPU), kStandin}) {
    const auto weight = torch::randn({4, 4}).to(device), input = torch::randn({2, 4}).to(device);
    {
      const Autocast autocast(device, torch::kBFloat16);
      EXPECT_EQ(torch::linear(input, weight).scalar_type(), torch::kBFloat16) << device;
      const Autocast nothing(device, torch::kFloat);
      EXPECT_EQ(torch::linear(input, weight).scalar_type(), torch::kBFloat16) << device;
    }
    EXPECT_EQ(torch::linear(input, weight).scalar_type(), torch::kFloat) << device;
  }
}

TEST(Autocast, GivesGradientsInFloat32) {
  const auto weight = torch::randn({4, 4}, torch::requires_grad());
  torch::Tensor out;
  {
    const Autocast autocast(torch::kCPU, torch::kBFloat16);
    out = torch::linear(torch::randn({2, 4}), weight);
  }
  out.to(torch::kFloat).sum().backward();
  EXPECT_EQ(weight.grad().scalar_type(), torch::kFloat);
}

/// bfloat16 has 8 bits of mantissa: a product is off by 0.4 % at most, and a gradient through ten layers by 7 %
/// (measured).
TEST(Autocast, SuitsEveryModelOnEveryDevice) {
  if (!kHasBf16) GTEST_SKIP() << testing::kNoBf16;
  for (const auto& model_case : testing::model_cases())
    for (const torch::Device device : {torch::Device(torch::kCPU), kStandin}) {
      const Batch batch = testing::make_batch(model_case, 8, 3, torch::kFloat);
      const auto exact = testing::make_seeded(model_case, torch::kFloat);
      const auto model = testing::make_seeded(model_case, torch::kFloat);
      testing::case_loss(model_case, *exact, batch).sum.backward();
      model->to(device);
      const auto scores = [&] {
        const Autocast autocast(device, torch::kBFloat16);
        return model->forward(batch.input.to(device));
      }();
      loss_sum(model_case.spec.loss, scores, batch.target, model_case.padding).sum.backward();
      std::vector<torch::Tensor> gradient;
      for (const auto& parameter : model->parameters()) gradient.push_back(parameter.grad().to(torch::kCPU));
      EXPECT_LT(testing::relative_error(gradient, testing::gradients(*exact)), 0.1) << model_case.name << device;
    }
}

TEST(Arithmetic, IsAsTheJobSays) {
  configure_arithmetic({.tf32 = job::Tf32::on, .autotune = job::Switch::on});
  EXPECT_TRUE(at::globalContext().allowTF32CuBLAS());
  EXPECT_TRUE(at::globalContext().allowTF32CuDNN());
  EXPECT_TRUE(at::globalContext().benchmarkCuDNN());
  configure_arithmetic({.tf32 = job::Tf32::off});
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_FALSE(at::globalContext().allowTF32CuDNN());
  configure_arithmetic({});
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_TRUE(at::globalContext().allowTF32CuDNN()) << "as PyTorch has it";
  EXPECT_FALSE(at::globalContext().benchmarkCuDNN());
}

TEST(Arithmetic, GivesTheSameBitsEachTimeWhereTheJobAsksForThat) {
  const at::Context& context = at::globalContext();
  configure_arithmetic({.deterministic = job::Switch::on});
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_FALSE(context.deterministicAlgorithmsWarnOnly()) << "what has no such kernel is refused";
  EXPECT_TRUE(context.deterministicCuDNN());
  configure_arithmetic({});
  EXPECT_FALSE(context.deterministicAlgorithms());
  EXPECT_FALSE(context.deterministicCuDNN());
}

TEST(Arithmetic, AddsUpInFloat32) {
  at::globalContext().setAllowFP16ReductionCuBLAS(true);
  configure_arithmetic({});
  EXPECT_FALSE(may_add_up_in_16_bits(at::globalContext()));
  at::globalContext().setAllowFP16ReductionCuBLAS(true);
  compute_type(job::Precision::automatic, kStandin);
  EXPECT_FALSE(may_add_up_in_16_bits(at::globalContext())) << "in a program without a job, too";
}

TEST(LossScale, HalvesAfterAStepThatWasNotFiniteAndGrowsAfterManyThatWere) {
  LossScale scale;
  const double first = scale.of(torch::kHalf, 1);
  EXPECT_GT(first, 1);
  EXPECT_TRUE(scale.update(false));
  EXPECT_EQ(scale.of(torch::kHalf, 1), first / 2);
  for (int i = 0; i < 1999; ++i) EXPECT_TRUE(scale.update(true));
  EXPECT_EQ(scale.of(torch::kHalf, 1), first / 2);
  EXPECT_TRUE(scale.update(true));
  EXPECT_EQ(scale.of(torch::kHalf, 1), first);
}

/// A gradient of 1 in each of 1,000,000 tokens, added up, overflows float16 at any factor of the sum.
TEST(LossScale, IsThatOfAMeanOverTheGlobalBatch) {
  LossScale scale;
  const double of_one = scale.of(torch::kHalf, 1);
  EXPECT_EQ(scale.of(torch::kHalf, 1024), of_one / 1024);
  const double units = 1e6, factor = scale.of(torch::kHalf, units);
  EXPECT_EQ(std::exp2(std::round(std::log2(factor))), factor) << "a power of two";
  EXPECT_LT(units * factor, 2 * of_one);
  EXPECT_EQ(scale.of(torch::kHalf, 0), of_one) << "a rank without samples";
  EXPECT_TRUE(scale.update(false));
  EXPECT_EQ(scale.of(torch::kHalf, 1024), of_one / 2048) << "what was learned holds for steps of any size";
}

TEST(LossScale, IsOneWhereNothingIsComputedInFloat16) {
  const LossScale scale;
  for (const double units : {0.0, 1.0, 1e6}) {
    EXPECT_EQ(scale.of(torch::kFloat, units), 1);
    EXPECT_EQ(scale.of(torch::kBFloat16, units), 1);
  }
}

TEST(LossScale, IsNoReasonAnyMoreOnceItIsOne) {
  LossScale scale;
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(scale.update(false)) << i;
  EXPECT_EQ(scale.of(torch::kHalf, 1), 1);
  EXPECT_FALSE(scale.update(false));
}

TEST(Precision, ThatNoDeviceHasIsRefusedOnAllRanks) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto refused = agree_on_precision(communicator, job::Precision::fp16, torch::kFloat);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    EXPECT_THAT(refused.error().message, HasSubstr("no device of this job computes in fp16 with libtorch "));
    const bool first = communicator.rank() == 0;
    const auto some = agree_on_precision(communicator, job::Precision::bf16, first ? torch::kFloat : torch::kBFloat16);
    ASSERT_TRUE(some);
    EXPECT_EQ(*some, (std::vector{torch::kFloat, torch::kBFloat16}));
    EXPECT_TRUE(agree_on_precision(communicator, job::Precision::automatic, torch::kFloat));
    const auto of_float64 = agree_on_precision(communicator, job::Precision::bf16, torch::kDouble);
    ASSERT_FALSE(of_float64);
    EXPECT_THAT(of_float64.error().message, HasSubstr("this one's parameters are float64"));
    EXPECT_TRUE(agree_on_precision(communicator, job::Precision::automatic, torch::kDouble));
  });
}

TEST(Precision, InWhichParametersAreSentIsTheShortOneOfAll) {
  EXPECT_EQ(common_short_type({torch::kBFloat16, torch::kBFloat16}), torch::kBFloat16);
  EXPECT_EQ(common_short_type({torch::kHalf}), torch::kHalf);
  EXPECT_EQ(common_short_type({torch::kHalf, torch::kBFloat16}), std::nullopt);
  EXPECT_EQ(common_short_type({torch::kBFloat16, torch::kFloat}), std::nullopt);
  EXPECT_EQ(common_short_type({torch::kDouble, torch::kDouble}), std::nullopt);
}

std::unique_ptr<DataParallel> parallel_over(comm::Communicator& communicator, const torch::Tensor& weight) {
  return DataParallel::create(communicator, testing::cpu_ops(), {weight}, [&] { weight.sum().backward(); }).value();
}

/// A power of two, so that not a bit of the gradient changes.
TEST(LossScale, OfOneRankIsTakenOutOfItsGradientsBeforeTheyAreAddedUp) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weight = torch::ones({100}, torch::requires_grad());
    const auto parallel = parallel_over(communicator, weight);
    const double scale = communicator.rank() == 1 ? 1024 : 1;
    parallel->begin({.weight = 2}, scale);
    (weight.sum() * 0.5 * scale).backward();
    const auto step = testing::reduce_and_update(*parallel, 1);
    ASSERT_TRUE(step && step->stands);
    EXPECT_TRUE(weight.eq(1 - 0.25).all().item<bool>());
  });
}

TEST(LossScale, ThatOverflowsOnOneRankSkipsTheStepOnAll) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weight = torch::ones({100}, torch::requires_grad());
    const auto parallel = parallel_over(communicator, weight);
    const bool overflows = communicator.rank() == 1;
    parallel->begin({.weight = 1}, overflows ? 1024 : 1);
    (weight * (overflows ? INFINITY : 1.0)).sum().backward();
    const auto step = testing::reduce_and_update(*parallel, 1);
    ASSERT_TRUE(step);
    EXPECT_FALSE(step->finite);
    EXPECT_FALSE(step->stands);
    EXPECT_TRUE(weight.eq(1).all().item<bool>()) << "nobody has updated";
    parallel->begin({.weight = 1}, overflows ? 512 : 1);
    (weight.sum() * (overflows ? 512 : 1)).backward();
    EXPECT_TRUE(testing::reduce_and_update(*parallel, 1)->stands) << "the next step is clean";
  });
}

}  // namespace
}  // namespace remuda::train
