#include "train/model/batch_norm.h"

#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/error_text.h"

namespace remuda::train {
namespace {

torch::Tensor some_input(int64_t samples, int64_t side) {
  return torch::arange(samples * 3 * side * side, torch::kFloat).sin().view({samples, 3, side, side});
}

BatchNorm with_momentum(std::optional<double> momentum) {
  torch::nn::BatchNormOptions options(3);
  if (momentum)
    options.momentum(*momentum);
  else
    options.momentum(c10::nullopt);
  BatchNorm norm(options);
  norm->weight.detach().fill_(2);
  norm->bias.detach().copy_(torch::tensor({1.0, -3.0, 0.5}));
  return norm;
}

TEST(BatchNorms, OneValueForEachChannelIsRefusedAndLeavesStatisticsAsTheyAre) {
  for (const std::optional<double> momentum : {std::optional(0.1), std::optional<double>()}) {
    BatchNorm norm = with_momentum(momentum);
    norm->forward(some_input(4, 2));
    const auto mean = norm->running_mean.clone(), variance = norm->running_var.clone();
    try {
      norm->forward(some_input(1, 1));
      ADD_FAILURE() << "it has no variance";
    } catch (const c10::Error& error) {
      EXPECT_EQ(sentence_of(error),
                "expected more than 1 value per channel when training, got input size [1, 3, 1, 1]");
    }
    EXPECT_TRUE(norm->running_mean.equal(mean) && norm->running_var.equal(variance));
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
    for (const auto& input : {some_input(2, 1), some_input(1, 2)}) norm->forward(input);
    EXPECT_TRUE(norm->running_var.isfinite().all().item<bool>()) << "two values have a variance";
    norm->eval();
    EXPECT_TRUE(norm->forward(some_input(1, 1)).isfinite().all().item<bool>());
  }
}

TEST(BatchNorms, OfAllRanksCountOneValueOfEachAsABatch) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto norms = NormExchange::create(communicator).value();
    BatchNorm norm = with_momentum(0.1), ordinary = with_momentum(0.1);
    norm->synchronize(*norms);
    const torch::Tensor both = some_input(2, 1);
    norms->learn([&] { norm->forward(both).sum().backward(); });
    ASSERT_TRUE(norms->agree());
    norm->forward(both.narrow(0, communicator.rank(), 1).requires_grad_()).sum().backward();
    ASSERT_TRUE(norms->finish());
    ordinary->forward(both);
    EXPECT_TRUE(norm->running_var.allclose(ordinary->running_var, 1e-6, 0));
    if (communicator.rank() == 0) norm->forward(both.narrow(0, 0, 1).requires_grad_()).sum().backward();
    ASSERT_TRUE(norms->finish());
    EXPECT_TRUE(norm->running_var.allclose(ordinary->running_var, 1e-6, 0)) << "one value of all ranks is not counted";
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
    const torch::NoGradGuard no_grad;
    EXPECT_THROW(norm->forward(both.narrow(0, 0, 1)), c10::Error) << "without gradients, it is this rank's alone";
  });
}

}  // namespace
}  // namespace remuda::train
