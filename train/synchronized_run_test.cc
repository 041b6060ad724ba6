// Whole runs with batch norm over all ranks, CPUs and stand-in accelerators together: they train what one device
// trains.
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/data_files.h"
#include "train/testing/standin/standin.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

class SynchronizedRun : public ::testing::Test {
 protected:
  static constexpr int kBatch = 24, kImages = 60;

  SynchronizedRun() {
    const testing::ModelCase resnet{.spec = {.name = "resnet", .width = 8, .norm = job::Norm::batch},
                                    .input = {1, 12, 12, 5, 0}};
    job_.data = testing::write_samples(folder_, resnet, kImages);
    job_.data.test = job_.data.train;
    job_.model = resnet.spec;
    job_.model.weights = folder_.path("start.safetensors");  // ranks that are threads share libtorch's random numbers
    EXPECT_TRUE(write_weights(*make_model(resnet.spec, resnet.input).value(),
                              PendingFile::create(job_.model.weights).value(), 0, [] {}));
    job_.train = {.epochs = 2, .global_batch = kBatch, .learning_rate = 0.01};
    job_.train.batch_norm = job::BatchNorm::synchronized;
    job_.balance.policy = balance::BalancePolicy::fixed;
  }
  ~SynchronizedRun() override {
    for (int device = 0; device < testing::kStandinDevices; ++device) testing::configure_standin(device, {});
  }

  struct Finished {
    RunReport report;  ///< of rank 0
    std::vector<torch::Tensor> parameters, buffers;
  };

  /// Every other rank computes on a stand-in, the first of which has `room` bytes for training.
  Finished run(std::vector<double> shares, size_t room = SIZE_MAX) {
    const int ranks = int(shares.size());
    job_.devices.clear();
    for (int rank = 0; rank < ranks; ++rank) job_.devices.push_back({"cpu:" + std::to_string(rank)});
    job_.balance.shares = std::move(shares);
    Finished finished;
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      TrainerOptions options;
      if (rank % 2 == 1) options.device = {torch::kXPU, c10::DeviceIndex(rank / 2)};
      const auto created = Trainer::create(job_, communicator, events, leave, options);
      ASSERT_TRUE(created) << created.error().message;
      const auto& trainer = *created;
      if (rank == 1 && room < SIZE_MAX)
        testing::configure_standin(0, {.memory_cap = testing::standin_memory(0) + room});
      const auto report = trainer->run();
      ASSERT_TRUE(report) << report.error().message;
      if (rank != 0) return;
      finished.report = *report;
      for (const auto& parameter : trainer->parameters().parameters())
        finished.parameters.push_back(parameter.detach().clone());
      for (const auto& buffer : trainer->model().buffers()) finished.buffers.push_back(buffer.detach().clone());
    });
    return finished;
  }

  void expect_same(const Finished& many, const Finished& one) {
    ASSERT_FALSE(many.parameters.empty());
    EXPECT_LT(testing::relative_error(many.parameters, one.parameters), 1e-5);
    EXPECT_LT(testing::relative_error(many.buffers, one.buffers), 1e-5);
    EXPECT_NEAR(many.report.test->loss, one.report.test->loss, 1e-4);
  }

  const ScratchFolder folder_;
  job::TrainJob job_;
};

// 1e-5: rounding of float32, over six steps.
TEST_F(SynchronizedRun, TrainsWhatOneDeviceDoes) {
  const Finished one = run({1});
  EXPECT_EQ(one.report.steps, 6);
  for (const std::vector<double>& shares : {std::vector<double>{3, 1}, {1, 100}, {1, 2, 1}}) {
    SCOPED_TRACE(::testing::PrintToString(shares));
    job_.memory.recompute = shares.size() == 3 ? job::Recompute::blocks : job::Recompute::none;
    const Finished many = run(shares);
    EXPECT_EQ(many.report.batch_norm, "synchronized");
    expect_same(many, one);
  }
  job_.train.batch_norm = job::BatchNorm::local;
  EXPECT_GT(testing::relative_error(run({3, 1}).parameters, one.parameters), 1e-3) << "so this can fail";
}

// As many on all: pieces of all ranks together are what is normalised.
TEST_F(SynchronizedRun, AnAcceleratorThatRunsOutOfMemoryHasAllComputeInPieces) {
  job_.train.epochs = 1;
  Finished tight;
  for (size_t room = 400'000; room > 10'000 && tight.report.oom_steps == 0; room /= 2) tight = run({1, 1}, room);
  ASSERT_GT(tight.report.oom_steps, 0);
  const int pieces = tight.report.devices[1].pieces;
  EXPECT_GT(pieces, 1);
  EXPECT_EQ(tight.report.devices[0].pieces, pieces);
  testing::configure_standin(0, {});
  job_.memory.accumulate = pieces;
  expect_same(tight, run({1, 1}));
}

}  // namespace
}  // namespace remuda::train
