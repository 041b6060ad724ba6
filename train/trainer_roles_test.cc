// Whole runs with devices of unlike roles, which learn what runs without roles learn.
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include "comm/testing/run_ranks.h"
#include "train/role_measures.h"
#include "train/testing/data_files.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

using balance::Role;

constexpr int kEdge = 12, kSetImages = 250;

class TrainerRoles : public ::testing::Test {
 protected:
  TrainerRoles() {
    job_.data = testing::write_samples(folder_, {.input = {1, kEdge, kEdge, 5, 0}}, kSetImages);
    job_.data.test = job_.data.train;
    job_.data.flip = job::Switch::on;
    job_.train = {.epochs = 2,
                  .global_batch = 100,
                  .optimizer = job::Optimizer::adamw,
                  .learning_rate = 0.01,
                  .average = 0.5,
                  .check_every = 1};
    job_.balance.policy = balance::BalancePolicy::even;
    torch::jit::Module module("linear");
    const auto weight = torch::arange(5 * kEdge * kEdge, torch::kFloat).sin().mul(0.1).view({5, kEdge * kEdge});
    module.register_parameter("weight", weight.detach().requires_grad_(), false);
    module.define("def forward(self, x):\n  return torch.matmul(torch.relu(x.flatten(1)), self.weight.t())\n");
    job_.model = {.path = folder_.path("model.pt")};
    module.save(job_.model.path);
  }

  struct Finished {
    RunReport report;
    torch::Tensor weight;
  };

  /// On CPU devices of these roles.
  Finished run(const std::vector<Role>& roles) {
    job_.devices.clear();
    for (const Role role : roles)
      job_.devices.push_back({.use = "cpu:" + std::to_string(job_.devices.size()), .role = role});
    Finished finished;
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(int(roles.size()), comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const auto trainer = Trainer::create(job_, communicator, events, leave);
      ASSERT_TRUE(trainer) << trainer.error().message;
      const auto report = (*trainer)->run();
      ASSERT_TRUE(report) << report.error().message;
      if (communicator.rank() != 0) return;
      finished.report = *report;
      finished.weight = (*trainer)->model().parameters().at(0).detach().clone();
    });
    return finished;
  }

  void expect_the_same(const Finished& found, const Finished& expected) {
    EXPECT_TRUE(found.weight.equal(expected.weight)) << "zeros that are added change no bit";
    EXPECT_EQ(found.report.loss_per_epoch, expected.report.loss_per_epoch);
    EXPECT_EQ(found.report.test->loss, expected.report.test->loss);
  }

  const ScratchFolder folder_;
  job::TrainJob job_;
};

TEST_F(TrainerRoles, ADeviceForStateOwnsAllOfItAndTakesNoSamples) {
  const Finished expected = run({Role::compute, Role::compute}),
                 found = run({Role::compute, Role::state, Role::compute});
  const auto& devices = found.report.devices;
  EXPECT_EQ(devices[1].samples, 0);
  EXPECT_EQ(devices[1].state_share, 1);
  EXPECT_EQ(devices[0].samples, devices[2].samples);
  EXPECT_EQ(devices[0].state_share + devices[2].state_share, 0);
  EXPECT_EQ(devices[0].memory.optimizer + devices[2].memory.optimizer, 0);
  EXPECT_GT(devices[1].memory.optimizer, 0);
  EXPECT_EQ(to_json(found.report)["devices"][1]["role"], "state");
  EXPECT_EQ(found.report.ideal_samples_per_s(), devices[0].alone_samples_per_s() + devices[2].alone_samples_per_s());
  expect_the_same(found, expected);
}

TEST_F(TrainerRoles, BySpeedADeviceForStateTakesNoSamplesEither) {
  job_.balance.policy = balance::BalancePolicy::automatic;
  const Finished found = run({Role::state, Role::compute});
  EXPECT_EQ(found.report.devices[0].samples, 0);
  EXPECT_EQ(found.report.devices[1].samples, 2 * kSetImages);
}

TEST_F(TrainerRoles, ADeviceThatPreprocessesMakesTheSameBatches) {
  const Finished expected = run({Role::compute, Role::compute});
  for (const int workers : {0, 2}) {
    job_.data.workers = workers;
    const Finished found = run({Role::preprocess, Role::compute, Role::compute});
    EXPECT_EQ(found.report.devices[0].samples, 0);
    EXPECT_EQ(found.report.devices[0].state_share, 0);
    EXPECT_EQ(found.report.devices[1].samples, kSetImages);
    expect_the_same(found, expected);
  }
}

TEST_F(TrainerRoles, AllRolesAtOnceWithStateInCheckpoints) {
  const Finished expected = run({Role::compute, Role::compute});
  job_.checkpoint.folder = folder_.path("kept");
  job_.train.epochs = 1;
  run({Role::compute, Role::preprocess, Role::state, Role::compute});
  job_.train.epochs = 2;
  job_.checkpoint.resume = job::Switch::on;
  const Finished rest = run({Role::state, Role::compute, Role::compute, Role::preprocess});
  EXPECT_EQ(rest.report.checkpoints.resumed_from, 3);
  expect_the_same(rest, expected);
}

// Of 3 ms and 2 ms a sample, of which 1 ms is the update of all parameters.
TEST(RoleMeasures, AreWhatADeviceDoesWithoutTheStateThatItHadByChance) {
  const AloneCosts costs{.update_s = 1e-3, .make_s = 6e-3};
  const std::vector<balance::BatchTime> alone{{1, 5e-3}, {2, NAN}, {3, 9e-3}};
  const MemoryNeed need{.known = 1, .held = 1000, .fixed = 20, .per_sample = 3, .room = 4000};
  const balance::MeasuredDevice device = measured(own_measures(costs, 2, true, 5000), alone, 0.25, need, 800, 7);
  EXPECT_NEAR(device.compute.fixed_s, 2e-3, 1e-9);
  EXPECT_NEAR(device.compute.per_sample_s, 2e-3, 1e-9);
  EXPECT_DOUBLE_EQ(device.update_s, 1e-3);
  EXPECT_DOUBLE_EQ(device.make_s, 3e-3) << "by two threads";
  EXPECT_EQ(device.slowdown, 7);
  EXPECT_EQ(device.memory_bytes, 5000);
  EXPECT_EQ(device.room_bytes, 4000);
  EXPECT_EQ(device.held_bytes, 1000 - 200);
  EXPECT_EQ(device.fixed_bytes, 20);
  EXPECT_EQ(device.sample_bytes, 3);
}

TEST(RoleMeasures, SayNothingOfWhatWasNotMeasured) {
  const balance::MeasuredDevice device = measured(own_measures({}, 1, true, 0), {{1, INFINITY}}, 0, {}, 800, 1);
  EXPECT_EQ(device.compute.seconds(1), 0);
  EXPECT_EQ(device.update_s, 0) << "it owned nothing";
  EXPECT_EQ(device.held_bytes, 0);
}

TEST(RoleMeasures, KnowWhereSamplesAreMade) {
  const auto making = [](int threads, bool is_cpu) {
    return measured(own_measures({}, threads, is_cpu, 0), {}, 0, {}, 0, 1).making;
  };
  EXPECT_EQ(making(0, true), balance::Making::in_turn);
  EXPECT_EQ(making(0, false), balance::Making::in_turn);
  EXPECT_EQ(making(2, true), balance::Making::same_cores);
  EXPECT_EQ(making(2, false), balance::Making::beside);
}

TEST_F(TrainerRoles, WithoutADeviceThatComputesThereIsNoRun) {
  job_.devices = {{.use = "cpu:0", .role = Role::state}};
  const std::atomic<bool> leave = false;
  const Events events(-1);
  run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto trainer = Trainer::create(job_, communicator, events, leave);
    ASSERT_FALSE(trainer);
    EXPECT_EQ(trainer.error().message, job::nobody_computes());
  });
}

}  // namespace
}  // namespace remuda::train
