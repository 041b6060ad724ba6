// Tests only: whole runs over a CPU and a stand-in accelerator, each rank a thread of this process.
#pragma once

#include <gtest/gtest.h>
#include <torch/script.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/data_files.h"
#include "train/testing/standin/standin.h"
#include "train/trainer.h"

namespace remuda::train::testing {

class TrainerOnDevices : public ::testing::Test {
 public:
  static constexpr int kPixels = 12, kImages = 250, kRanks = 2;

 protected:
  TrainerOnDevices() {
    job_.data = write_samples(folder_, {.input = {1, kPixels, kPixels, 5, 0}}, kImages);
    job_.train = {.epochs = 2, .global_batch = 100, .learning_rate = 0.01, .average = 0.5, .check_every = 1};
    job_.data.test = job_.data.train;
    job_.devices = {{"cpu:0"}, {"gpu:0"}};
    job_.balance.policy = balance::BalancePolicy::even;
    torch::jit::Module module("linear");
    const auto weight = torch::arange(5 * kPixels * kPixels, torch::kFloat).sin().mul(0.1).view({5, kPixels * kPixels});
    module.register_parameter("weight", weight.detach().requires_grad_(), false);
    module.define("def forward(self, x):\n  return torch.matmul(torch.relu(x.flatten(1)), self.weight.t())\n");
    job_.model = {.path = folder_.path("model.pt")};
    module.save(job_.model.path);
  }
  ~TrainerOnDevices() override {
    lose_standin(0, false);
    configure_standin(0, {});
  }

  /// Each rank's outcome; rank 1 computes on `second`. `before_run` is called on rank 1.
  std::vector<Result<RunReport>> run(
      torch::Device second, const std::function<void()>& before_run = [] {}, torch::Device first = torch::kCPU) {
    std::vector<Result<RunReport>> reports(kRanks);
    const std::atomic<bool> leave = false;
    const Events events(-1);
    comm::run_ranks(kRanks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const bool other = communicator.rank() == 1;
      reports[size_t(communicator.rank())] = outcome_of([&]() -> Result<RunReport> {
        REMUDA_ASSIGN(const auto trainer,
                      Trainer::create(job_, communicator, events, leave,
                                      {.device = other ? second : first, .room_bytes = other ? room_bytes_ : 0}));
        if (other) before_run();
        return trainer->run();
      });
    });
    return reports;
  }

  /// What a worker does with an exception.
  static Result<RunReport> outcome_of(const std::function<Result<RunReport>()>& run) {
    try {
      return run();
    } catch (const std::exception& error) {
      return failed(first_line(error));
    }
  }

  const ScratchFolder folder_;
  job::TrainJob job_;
  double room_bytes_ = 0;  ///< of rank 1's device, where not 0; the stand-in does not say
};

}  // namespace remuda::train::testing
