// Ranks without samples in a step: whatever they hold, it is no gradient.
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/data_parallel.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

using Transport = comm::ConnectOptions::Transport;

TEST(SilentRanks, HoldNoGradientWhateverIsThere) {
  for (const auto transport : {comm::kSharedMemory, Transport::tcp})
    run_ranks(2, transport, [](comm::Communicator& communicator) {
      const std::vector weights{torch::ones({3}, torch::requires_grad()), torch::ones({5}, torch::requires_grad())};
      const auto backward = [&] { (weights[0].sum() + weights[1].sum()).backward(); };
      const auto has_stepped = [&](int steps) {
        return weights[0].eq(1 - steps).all().item<bool>() && weights[1].eq(1 - steps).all().item<bool>();
      };
      const auto parallel =
          DataParallel::create(communicator, testing::cpu_ops(), weights, backward, {.bucket_bytes = 1}).value();
      const bool is_silent = communicator.rank() == 1;
      for (int step = 1; step <= 2; ++step) {
        parallel->set_silent({false, true});
        parallel->begin({.weight = is_silent ? 0.0 : 1.0});
        if (is_silent)
          for (const torch::Tensor& weight : weights) weight.mutable_grad().fill_(NAN);
        else
          backward();
        const auto reduced = testing::reduce_and_update(*parallel, 1);
        ASSERT_TRUE(reduced);
        EXPECT_TRUE(reduced->stands);
        EXPECT_TRUE(has_stepped(step));
      }
      parallel->set_silent({});
      parallel->begin({.weight = 1});
      (weights[0].sum() + weights[1].sum()).backward();
      ASSERT_TRUE(testing::reduce_and_update(*parallel, 1));
      EXPECT_TRUE(has_stepped(3)) << "what it held is gone";
    });
}

}  // namespace
}  // namespace remuda::train
