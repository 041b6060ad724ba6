// Whole runs whose blocks are sharded, over CPUs and stand-in accelerators: they train what runs with whole parameters
// train, in less memory, go on from each other's checkpoints, and leave the same files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/error_text.h"
#include "train/run_outputs.h"
#include "train/testing/data_files.h"
#include "train/testing/script_models.h"
#include "train/testing/standin/standin.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;

class ShardedRun : public ::testing::Test {
 protected:
  static constexpr int kBatch = 24, kImages = 60, kSide = 12;

  ShardedRun() { use({.spec = {.name = "mlp", .hidden = {40, 32, 24}}, .input = {1, kSide, kSide, 5, 0}}); }
  ~ShardedRun() override {
    testing::lose_standin(0, false);
    for (int device = 0; device < testing::kStandinDevices; ++device) testing::configure_standin(device, {});
  }

  /// Ranks that are threads share libtorch's random numbers: so the weights to start from come from a file.
  void use(const testing::ModelCase& model_case) {
    job_.data = testing::write_samples(folder_, model_case, kImages);
    job_.data.test = job_.data.train;
    job_.model = model_case.spec;
    job_.model.weights = folder_.path("start.safetensors");
    torch::manual_seed(3);
    EXPECT_TRUE(write_weights(*make_model(model_case.spec, model_case.input).value(),
                              PendingFile::create(job_.model.weights).value(), 0, [] {}));
    job_.train = {.epochs = 2, .global_batch = kBatch, .optimizer = job::Optimizer::adamw, .learning_rate = 0.01};
    job_.train.check_every = 1;
    job_.balance.policy = balance::BalancePolicy::fixed;
    job_.output.weights = folder_.path("trained.safetensors");
  }

  struct Finished {
    RunReport report;                    ///< of rank 0
    std::vector<torch::Tensor> weights;  ///< as they are in the file
    std::string error;
  };

  /// Every other rank computes on a stand-in. `begun` is called by the last rank when it has a trainer.
  Finished run(std::vector<double> shares, job::Held parameters, const std::function<void()>& begun = [] {}) {
    std::vector<torch::Device> devices;
    for (size_t rank = 0; rank < shares.size(); ++rank)
      devices.push_back(rank % 2 == 1 ? torch::Device(torch::kXPU, c10::DeviceIndex(rank / 2)) : torch::kCPU);
    return run_on(devices, parameters, std::move(shares), begun);
  }

  Finished run_on(
      const std::vector<torch::Device>& devices, job::Held parameters, std::vector<double> shares = {},
      const std::function<void()>& begun = [] {}) {
    const int ranks = int(devices.size());
    job_.devices.clear();
    for (int rank = 0; rank < ranks; ++rank) job_.devices.push_back({"cpu:" + std::to_string(rank)});
    job_.balance.shares = shares.empty() ? std::vector<double>(size_t(ranks), 1.0) : std::move(shares);
    job_.memory.parameters = parameters;
    Finished finished;
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      Result<void> ended;
      try {
        ended = run_rank(
            communicator, events, leave, {.device = devices[size_t(rank)]}, finished,
            rank + 1 == ranks ? begun : [] {});
      } catch (const std::exception& error) {
        ended = failed(sentence_of(error));
      }
      if (!ended && rank == 0) finished.error = ended.error().message;
    });
    return finished;
  }

  Result<void> run_rank(comm::Communicator& communicator, const Events& events, const std::atomic<bool>& leave,
                        const TrainerOptions& options, Finished& finished, const std::function<void()>& begun) {
    const int rank = communicator.rank();
    REMUDA_ASSIGN(const auto trainer, Trainer::create(job_, communicator, events, leave, options));
    begun();
    REMUDA_ASSIGN(RunReport report, trainer->run());
    REMUDA_TRY(trainer->write([&](const ValuesOf& values_of) -> Result<void> {
      REMUDA_ASSIGN(RunOutputs outputs, RunOutputs::create(job_, trainer->model()));
      return outputs.write(trainer->model(), report, events, values_of);
    }));
    if (rank != 0) return {};
    finished.report = std::move(report);
    const auto model = make_model(job_.model, {1, kSide, kSide, 5, 0}).value();
    REMUDA_TRY(load_weights(*model, job_.output.weights));
    for (const auto& parameter : model->parameters()) finished.weights.push_back(parameter.detach().clone());
    return {};
  }

  void expect_same(const Finished& sharded, const Finished& whole) {
    ASSERT_EQ(sharded.error, "");
    ASSERT_EQ(whole.error, "");
    EXPECT_LT(testing::relative_error(sharded.weights, whole.weights), 1e-5);
    for (size_t epoch = 0; epoch < 2; ++epoch)
      EXPECT_NEAR(sharded.report.loss_per_epoch.at(epoch), whole.report.loss_per_epoch.at(epoch), 1e-5);
    EXPECT_NEAR(sharded.report.test->loss, whole.report.test->loss, 1e-5);
    EXPECT_EQ(sharded.report.test->accuracy, whole.report.test->accuracy);
  }

  const ScratchFolder folder_;
  job::TrainJob job_;
};

// 1e-5: float32 sums in another order, over six steps of AdamW.
TEST_F(ShardedRun, TrainsWhatWholeParametersDo) {
  for (int device = 0; device < 2; ++device)
    testing::configure_standin(device, {.random_delay_s = 1e-4, .seed = unsigned(device)});
  const Finished whole = run({1}, job::Held::whole);
  EXPECT_EQ(whole.report.steps, 6);
  for (const std::vector<double>& shares : {std::vector<double>{1}, {3, 1}, {1, 100}, {1, 2, 1}}) {
    SCOPED_TRACE(::testing::PrintToString(shares));
    expect_same(run(shares, job::Held::sharded), whole);
  }
}

TEST_F(ShardedRun, GoesTogetherWithWhatSavesMemoryAndWithAverages) {
  job_.train.clip_norm = 0.5;
  job_.train.average = 0.5;
  const Finished whole = run({1}, job::Held::whole);
  for (const job::UpdatesOn updates_on : {job::UpdatesOn::device, job::UpdatesOn::host})
    for (const job::Recompute recompute : {job::Recompute::none, job::Recompute::blocks}) {
      job_.memory = {.recompute = recompute, .accumulate = 3, .optimizer = updates_on};
      job_.balance.state_shares = {3, 1};
      expect_same(run({1, 2}, job::Held::sharded), whole);
    }
}

TEST_F(ShardedRun, GoesOnFromACheckpointOfAnyNumberOfRanksEitherWay) {
  const Finished whole = run({1}, job::Held::whole);
  const std::vector<std::pair<job::Held, job::Held>> ways{{job::Held::sharded, job::Held::sharded},
                                                          {job::Held::whole, job::Held::sharded},
                                                          {job::Held::sharded, job::Held::whole}};
  for (const auto& [before, after] : ways) {
    const ScratchFolder kept;
    job_.checkpoint = {.folder = kept.path("kept")};
    job_.train.max_steps = 3;
    ASSERT_EQ(run({1, 1, 1}, before).error, "");
    job_.train.max_steps = 0;
    job_.checkpoint.resume = job::Switch::on;
    const Finished rest = run({3, 1}, after);
    EXPECT_EQ(rest.report.checkpoints.resumed_from, 3);
    expect_same(rest, whole);
  }
}

TEST_F(ShardedRun, AnAcceleratorThatRunsOutOfMemoryComputesInSmallerPieces) {
  const Finished roomy = run({1, 1}, job::Held::sharded);
  Finished tight = roomy;
  for (size_t room = 200'000; tight.error.empty() && tight.report.oom_steps == 0; room -= room / 8) {
    testing::configure_standin(0, {});
    tight = run({1, 1}, job::Held::sharded,
                [room] { testing::configure_standin(0, {.memory_cap = testing::standin_memory(0) + room}); });
  }
  ASSERT_GT(tight.report.oom_steps, 0);
  EXPECT_GT(tight.report.devices[1].pieces, 1);
  expect_same(tight, roomy);
}

// Wherever it is: in a pass, between two of them, or in an update.
TEST_F(ShardedRun, ADeviceThatIsLostEndsTheRunOfAllRanks) {
  for (const int calls : {1, 101, 212, 323}) {
    SCOPED_TRACE(calls);
    const Finished ended = run({1, 1}, job::Held::sharded, [calls] { testing::lose_standin(0, true, calls); });
    testing::lose_standin(0, false);
    EXPECT_THAT(ended.error, HasSubstr("rank 1"));
  }
}

/// Of SGD with whole parameters: values, gradients and momentum.
size_t bytes_to_train(const job::ModelSpec& spec) {
  size_t count = 0;
  for (const auto& one : make_model(spec, {1, 12, 12, 5, 0}).value()->parameters()) count += size_t(one.numel());
  return 12 * count;
}

// 1e-5: as above.
TEST_F(ShardedRun, AModelOfTwiceTheMemoryOfADeviceTrains) {
  use({.spec = {.name = "mlp", .hidden = std::vector<int>(24, 96)}, .input = {1, kSide, kSide, 5, 0}});
  const std::vector<torch::Device> devices{{torch::kXPU, 0}, {torch::kXPU, 1}, {torch::kXPU, 2}};
  job_.train.device_collectives = job::Switch::off;
  job_.train.optimizer = job::Optimizer::sgd;
  const Finished whole = run({1}, job::Held::whole);
  const size_t all = bytes_to_train(job_.model);
  const auto limit = [](size_t bytes) {
    for (int device = 0; device < 3; ++device)
      testing::configure_standin(device, {.memory_cap = testing::standin_memory(device) + bytes});
  };
  limit(all / 2);
  EXPECT_THAT(run_on(devices, job::Held::whole).error, HasSubstr("has no room for parameters"));
  expect_same(run_on(devices, job::Held::sharded), whole);
  job_.memory.optimizer = job::UpdatesOn::host;
  limit(all / 3 / 2);  // the parameters alone are twice as much
  expect_same(run_on({devices[0]}, job::Held::sharded), whole);
}

TEST_F(ShardedRun, AModelOfNothingButBlocksTrains) {
  job_.model = {.path = folder_.path("model.pt")};
  for (const bool with_view : {false, true}) {
    std::vector<testing::ScriptLayer> layers{{40, kSide * kSide}, {24, 40}, {5, 24}};
    // Its memory goes with it, and nothing before it gets a gradient.
    if (with_view) layers.insert(layers.begin() + 2, {1, 24, "self.weight.expand(x.size(0), 24)"});
    testing::write_sequential(job_.model.path, layers);
    const Finished whole = run({1}, job::Held::whole);
    for (const job::Recompute recompute : {job::Recompute::none, job::Recompute::blocks}) {
      job_.memory.recompute = recompute;
      expect_same(run({1, 2}, job::Held::sharded), whole);
    }
  }
}

TEST_F(ShardedRun, AModelWithoutBlocksIsRefused) {
  job_.model.hidden.clear();
  job_.model.weights.clear();
  EXPECT_THAT(run({1, 1}, job::Held::sharded).error,
              HasSubstr("memory.parameters = \"sharded\" is for models with blocks, but model mlp has none"));
}

}  // namespace
}  // namespace remuda::train
