// Whole runs over a CPU and a stand-in accelerator, each rank a thread of this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include "train/testing/precision.h"
#include "train/testing/standin/library.h"
#include "train/testing/trainer_on_devices.h"

namespace remuda::train {
namespace {

using ::testing::AnyOf;
using testing::configure_standin;
using ::testing::HasSubstr;
using testing::TrainerOnDevices;

// float32 sums of other parts of the batch, over six steps of SGD with momentum.
TEST_F(TrainerOnDevices, AnAcceleratorAndACpuTrainAsTwoCpusDo) {
  configure_standin(0, {.random_delay_s = 2e-4});
  const auto expected = run(torch::kCPU), mixed = run(torch::Device(torch::kXPU, 0));
  ASSERT_TRUE(expected[0]) << expected[0].error().message;
  ASSERT_TRUE(mixed[0]) << mixed[0].error().message;
  ASSERT_TRUE(mixed[1]) << mixed[1].error().message;
  ASSERT_EQ(mixed[0]->loss_per_epoch.size(), 2u);
  for (size_t epoch = 0; epoch < 2; ++epoch)
    EXPECT_NEAR(mixed[0]->loss_per_epoch[epoch], expected[0]->loss_per_epoch[epoch], 1e-5);
  EXPECT_NEAR(mixed[0]->test->loss, expected[0]->test->loss, 1e-5);
  EXPECT_GT(mixed[0]->devices[1].samples, 0);
  EXPECT_EQ(mixed[0]->collectives.why_not, "rank 0 is on a cpu device, rank 1 is on a cuda device");
}

TEST_F(TrainerOnDevices, AcceleratorsOfOneMakerTrainAsTwoCpusDo) {
  testing::use_standin_library();
  const torch::Device first(torch::kXPU, 0), second(torch::kXPU, 1);
  for (const int device : {0, 1}) configure_standin(device, {.random_delay_s = 2e-4, .seed = unsigned(device)});
  const auto expected = run(torch::kCPU), direct = run(second, [] {}, first);
  job_.train.device_collectives = job::Switch::off;
  const int calls = comm::standin_library_calls();
  const auto by_host = run(second, [] {}, first);
  EXPECT_EQ(comm::standin_library_calls(), calls);
  for (const auto& reports : {direct, by_host}) {
    ASSERT_TRUE(reports[0]) << reports[0].error().message;
    ASSERT_TRUE(reports[1]) << reports[1].error().message;
    for (size_t epoch = 0; epoch < 2; ++epoch)
      EXPECT_NEAR(reports[0]->loss_per_epoch[epoch], expected[0]->loss_per_epoch[epoch], 1e-5);
    EXPECT_NEAR(reports[0]->test->loss, expected[0]->test->loss, 1e-5);
  }
  const auto way = [](const RunReport& report) { return to_json(report)["device_collectives"]; };
  EXPECT_EQ(way(*direct[0]), (Json{{"library", "NCCL 2.21.5"}, {"same_bits", false}}));
  EXPECT_EQ(way(*by_host[0]), (Json{{"why_not", "train.device_collectives is \"off\""}}));
  EXPECT_EQ(way(*expected[0]),
            (Json{{"why_not", "rank 0 is on a cpu device, for which there is no library of collectives"}}));
}

/// Each device in the type it is fast in; parameters are compared after each step. bfloat16 has 8 bits: its rounding,
/// 0.4 % a product, shows in the second digit of the loss.
TEST_F(TrainerOnDevices, EachDeviceComputesInItsOwnPrecision) {
  if (!testing::cpu_has_bf16()) GTEST_SKIP() << testing::kNoBf16;
  const auto expected = run(torch::kCPU);
  job_.train.precision = job::Precision::automatic;
  const auto mixed = run(torch::Device(torch::kXPU, 0));
  job_.train.precision = job::Precision::bf16;
  const auto both = run(torch::Device(torch::kXPU, 0));
  for (const auto& reports : {mixed, both}) {
    ASSERT_TRUE(reports[0]) << reports[0].error().message;
    for (size_t epoch = 0; epoch < 2; ++epoch)
      EXPECT_NEAR(reports[0]->loss_per_epoch[epoch], expected[0]->loss_per_epoch[epoch], 0.02);
  }
  EXPECT_EQ(to_json(*mixed[0])["devices"][0]["precision"], "float32");
  EXPECT_EQ(to_json(*mixed[0])["devices"][1]["precision"], "bf16");
  EXPECT_EQ(to_json(*both[0])["devices"][0]["precision"], "bf16");
  EXPECT_EQ(to_json(*mixed[0])["parameters_sent_as"], "float32");
  EXPECT_EQ(to_json(*both[0])["parameters_sent_as"], "bf16");
}

// 1e-4: another kernel updates, over six steps of AdamW, which makes whole steps of small gradients.
TEST_F(TrainerOnDevices, AnOptimizerWithoutRoomOnItsDeviceWorksOnTheHost) {
  constexpr int kWidth = 512;
  constexpr size_t kModel = 4 * (kPixels * kPixels + 5) * kWidth;  // bytes
  torch::jit::Module module("wide");
  const auto add = [&](const char* name, int rows, int columns) {
    const auto values = torch::arange(rows * columns, torch::kFloat).sin().mul(0.1).view({rows, columns});
    module.register_parameter(name, values.detach().requires_grad_(), false);
  };
  add("first", kWidth, kPixels * kPixels);
  add("second", 5, kWidth);
  module.define(
      "def forward(self, x):\n  x = torch.matmul(x.flatten(1), self.first.t())\n"
      "  return torch.matmul(torch.relu(x), self.second.t())\n");
  module.save(job_.model.path);
  job_.train.optimizer = job::Optimizer::adamw;
  job_.train.learning_rate = 1e-3;
  job_.balance.state_shares = {0, 1};
  const torch::Device device(torch::kXPU, 0);
  const auto roomy = run(device);
  // The model as it is read, parameters, gradients and activations; but not two values of state and an average as well.
  configure_standin(0, {.memory_cap = testing::standin_memory(0) + kModel * 4});
  EXPECT_THAT(run(device)[1].error().message, HasSubstr("memory.optimizer = \"host\" keeps that"));
  job_.memory.optimizer = job::UpdatesOn::host;
  const auto tight = run(device);
  for (const auto& report : tight) ASSERT_TRUE(report) << report.error().message;
  EXPECT_NEAR(tight[0]->loss_per_epoch[1], roomy[0]->loss_per_epoch[1], 1e-4);
  EXPECT_NEAR(tight[0]->test->loss, roomy[0]->test->loss, 1e-4);
  const Json memory = to_json(*tight[0])["devices"][1]["memory"];
  EXPECT_GT(memory["optimizer_on_host_bytes"], 3 * kModel);
  EXPECT_EQ(memory["peak_by_kind"]["measured"]["optimizer"], 0);
  EXPECT_FALSE(to_json(*tight[0])["devices"][0]["memory"].contains("optimizer_on_host_bytes"));
}

// 1e-6: sums of float32 in another order.
TEST_F(TrainerOnDevices, AnAcceleratorThatRunsOutOfMemoryComputesInSmallerPieces) {
  const auto roomy = run(torch::Device(torch::kXPU, 0));
  const auto full = [] { configure_standin(0, {.memory_cap = testing::standin_memory(0) + 30'000}); };
  const auto tight = run(torch::Device(torch::kXPU, 0), full);
  for (const auto& report : tight) ASSERT_TRUE(report) << report.error().message;
  const DeviceReport& starved = tight[0]->devices[1];
  EXPECT_GT(starved.pieces, 1);
  EXPECT_EQ(starved.share, 0.5);
  EXPECT_GT(starved.oom_evaluations, 0);
  for (size_t epoch = 0; epoch < 2; ++epoch)
    EXPECT_NEAR(tight[0]->loss_per_epoch[epoch], roomy[0]->loss_per_epoch[epoch], 1e-6);
  EXPECT_NEAR(tight[0]->test->loss, roomy[0]->test->loss, 1e-6);
}

/// Nine results of 800 kB for each device, which backward() needs.
void make_deep(const std::string& path) {
  torch::manual_seed(5);
  torch::jit::Module module("deep");
  module.register_parameter(
      "up", torch::randn({4096, TrainerOnDevices::kPixels * TrainerOnDevices::kPixels}).mul(0.05).requires_grad_(),
      false);
  module.register_parameter("down", torch::randn({5, 4096}).mul(0.01).requires_grad_(), false);
  module.define(
      "def forward(self, x):\n  x = torch.matmul(x.flatten(1), self.up.t())\n"
      "  for i in range(8):\n    x = torch.tanh(x)\n  return torch.matmul(x, self.down.t())\n");
  module.save(path);
}

TEST_F(TrainerOnDevices, ActivationsMayLieInMemoryOfTheHost) {
  make_deep(job_.model.path);
  configure_standin(0, {.random_delay_s = 1e-4});
  const torch::Device device(torch::kXPU, 0);
  const auto expected = run(device);
  ASSERT_TRUE(expected[0]) << expected[0].error().message;
  job_.memory.activations = job::Activations::host;
  const auto spilled = run(device);
  for (const auto& report : spilled) ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(spilled[0]->loss_per_epoch, expected[0]->loss_per_epoch);
  const Json report = to_json(*spilled[0]), memory = report["devices"][1]["memory"];
  EXPECT_GT(memory["spilled"]["bytes_per_pass"], 4e6) << "of the smaller batches of trials, too";
  EXPECT_GT(memory["spilled"]["predicted_s_per_pass"], 0);
  EXPECT_TRUE(memory["spilled"].contains("wait_s_per_pass") || memory["spilled"].contains("wait_missing"));
  EXPECT_LT(memory["peak_bytes"], expected[0]->devices[1].memory.peak - 3e6);
  EXPECT_NEAR(spilled[0]->devices[1].memory.predicted_peak / spilled[0]->devices[1].memory.peak, 1, 0.1);
  EXPECT_FALSE(report["devices"][0]["memory"].contains("spilled")) << "on a CPU they lie there anyway";
  EXPECT_FALSE(report.contains("spills")) << "not for want of room";
}

TEST_F(TrainerOnDevices, ActivationsGoToTheHostOnlyWhereAPartWouldNotFit) {
  make_deep(job_.model.path);
  job_.memory.activations = job::Activations::automatic;
  const torch::Device device(torch::kXPU, 0);
  const auto roomy = run(device);
  ASSERT_TRUE(roomy[0]) << roomy[0].error().message;
  EXPECT_FALSE(roomy[0]->spills);
  const DeviceReport& whole = roomy[0]->devices[1];
  const double activations = whole.memory.peak - whole.memory_need.held;
  room_bytes_ = whole.memory.peak - 0.3 * activations;
  const auto tight = run(device);
  ASSERT_TRUE(tight[1]) << tight[1].error().message;
  ASSERT_TRUE(tight[0]) << tight[0].error().message;
  EXPECT_TRUE(tight[0]->spills);
  EXPECT_LE(tight[0]->devices[1].memory.peak, room_bytes_);
  EXPECT_EQ(tight[0]->devices[1].pieces, 1);
  EXPECT_EQ(tight[0]->loss_per_epoch, roomy[0]->loss_per_epoch);
}

// The accelerator owns nothing, or everything; a step of AdamW by other kernels.
TEST_F(TrainerOnDevices, UnlikeRolesLearnWhatBothLearnTogether) {
  job_.train.optimizer = job::Optimizer::adamw;
  const torch::Device device(torch::kXPU, 0);
  const auto expected = run(device);
  for (const auto role : {balance::Role::state, balance::Role::preprocess})
    for (const size_t other : {0, 1}) {
      job_.devices[other].role = role;
      const auto found = run(device);
      job_.devices[other].role = balance::Role::compute;
      for (const auto& report : found) ASSERT_TRUE(report) << report.error().message;
      const auto& reports = found[0]->devices;
      EXPECT_EQ(reports[other].samples, 0);
      EXPECT_EQ(reports[other].state_share, role == balance::Role::state ? 1 : 0);
      for (size_t epoch = 0; epoch < 2; ++epoch)
        EXPECT_NEAR(found[0]->loss_per_epoch[epoch], expected[0]->loss_per_epoch[epoch], 1e-6);
      EXPECT_NEAR(found[0]->test->loss, expected[0]->test->loss, 1e-6);
    }
}

TEST_F(TrainerOnDevices, AProfileHasTheTimesOfTheAcceleratorsOwn) {
  configure_standin(0, {.random_delay_s = 1e-4});
  job_.output.profile = 2;
  const auto reports = run(torch::Device(torch::kXPU, 0));
  ASSERT_TRUE(reports[0]) << reports[0].error().message;
  const Json& devices = reports[0]->profile["devices"];
  EXPECT_FALSE(devices[0].contains("device_s"));
  EXPECT_FALSE(devices[0]["operators"][0].contains("device_s"));
  double listed_s = 0, last_s = 1e9;
  for (const Json& one : devices[1]["operators"]) {
    listed_s += one["device_self_s"].get<double>();
    EXPECT_LE(one["device_self_s"], last_s) << "the longest first";
    last_s = one["device_self_s"];
  }
  EXPECT_GT(listed_s, 0);
  EXPECT_GE(devices[1]["device_s"], listed_s * 0.999);  // rounding of sums
}

TEST_F(TrainerOnDevices, TheCacheOfAnAcceleratorIsEmptiedAfterEachEpochWhereTheJobSaysSo) {
  const int before = testing::standin_caches_emptied();
  ASSERT_TRUE(run(torch::Device(torch::kXPU, 0))[0]);
  EXPECT_EQ(testing::standin_caches_emptied(), before);
  job_.memory.empty_cache = job::Switch::on;
  ASSERT_TRUE(run(torch::Device(torch::kXPU, 0))[0]);
  EXPECT_EQ(testing::standin_caches_emptied(), before + job_.train.epochs);
}

TEST_F(TrainerOnDevices, AnAcceleratorThatIsLostEndsTheRunOnAllRanks) {
  const auto reports = run(torch::Device(torch::kXPU, 0), [] { testing::lose_standin(0); });
  ASSERT_FALSE(reports[0]);
  ASSERT_FALSE(reports[1]);
  EXPECT_EQ(reports[0].error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(reports[0].error().peer, 1);
  EXPECT_THAT(reports[1].error().message, HasSubstr("the stand-in device is lost"));
}

/// Of each rank: where it ended, and what it leaves.
struct LeftBehind {
  torch::Tensor weight;
  Inheritance bequest;
  std::string error;
};

/// `inherited`: of each rank, or none. `before_run` is called on rank 1.
std::vector<LeftBehind> run_with_buddies(
    const job::TrainJob& job, const std::vector<torch::Device>& on, std::vector<Inheritance> inherited = {},
    const std::function<void()>& before_run = [] {}) {
  std::vector<LeftBehind> left(on.size());
  const std::atomic<bool> leave = false;
  const Events events(-1);
  inherited.resize(on.size());
  run_ranks(int(on.size()), comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto rank = size_t(communicator.rank());
    const auto trainer =
        Trainer::create(job, communicator, events, leave, {.device = on[rank], .inherited = inherited[rank]});
    if (!trainer) {
      left[rank].error = trainer.error().message;
      return;
    }
    if (rank == 1) before_run();
    try {
      const auto report = (*trainer)->run();
      left[rank].error = report ? "" : report.error().message;
    } catch (const std::exception& error) {
      left[rank].error = first_line(error);
      return;
    }
    left[rank].bequest = (*trainer)->bequest();
    if (left[rank].error.empty())
      left[rank].weight = (*trainer)->model().parameters().at(0).detach().to(torch::kCPU).clone();
  });
  return left;
}

TEST_F(TrainerOnDevices, WhicheverIsLeftGoesOnFromTheCopiesOfBoth) {
  job_.train.optimizer = job::Optimizer::adamw;
  job_.elastic = {.ranks_lost = 1, .buddy = true};
  const std::vector<torch::Device> devices{torch::kCPU, torch::Device(torch::kXPU, 0)};
  const torch::Tensor whole = run_with_buddies(job_, devices)[0].weight;
  ASSERT_TRUE(whole.defined());
  job::TrainJob first = job_;
  first.train.max_steps = 2;
  const auto begun = run_with_buddies(first, devices);
  for (const int left : {0, 1}) {
    Inheritance inherited = begun[size_t(left)].bequest;
    inherited.losses = {{.rank = 1 - left, .cause = "lost"}};
    inherited.left = {size_t(left)};
    const auto rest = run_with_buddies(job::on_ranks(job_, {left}), {devices[size_t(left)]}, {inherited});
    ASSERT_TRUE(rest[0].weight.defined());
    EXPECT_EQ(rest[0].bequest.losses.at(0).state, "memory");
    EXPECT_EQ(rest[0].bequest.losses.at(0).resumed_from, 2);
    EXPECT_LT(((rest[0].weight - whole).norm() / whole.norm()).item<double>(), 1e-6);
  }
}

// At whatever moment of a step: in forward, backward, on the way to the others, in the update.
TEST_F(TrainerOnDevices, ADeviceThatIsLostInMidRunIsLeftBehind) {
  job_.train.optimizer = job::Optimizer::adamw;
  job_.elastic = {.ranks_lost = 1, .buddy = true};
  job_.devices = {{"cpu:0"}, {"gpu:0"}, {"cpu:1"}};
  const torch::Device lost(torch::kXPU, 0);
  const torch::Tensor whole = run_with_buddies(job_, {torch::kCPU, lost, torch::kCPU})[0].weight;
  ASSERT_TRUE(whole.defined());
  for (const int calls : {1, 160, 214, 268, 340, 400, 520}) {
    SCOPED_TRACE(calls);
    const auto begun =
        run_with_buddies(job_, {torch::kCPU, lost, torch::kCPU}, {}, [&] { testing::lose_standin(0, true, calls); });
    testing::lose_standin(0, false);
    EXPECT_THAT(begun[1].error, HasSubstr("the stand-in device is lost"));
    std::vector<Inheritance> inherited;
    for (const size_t rank : {0, 2}) {
      const std::string other = std::to_string(2 - rank);  // which has seen the loss first, and has gone as well
      EXPECT_THAT(begun[rank].error, AnyOf(HasSubstr("rank 1"), HasSubstr("rank " + other + " went away")));
      inherited.push_back(begun[rank].bequest);
      inherited.back().losses = {{.rank = 1, .cause = "the device is lost"}};
      inherited.back().left = {0, 2};
      inherited.back().generation = 1;
    }
    const auto rest = run_with_buddies(job::on_ranks(job_, {0, 2}), {torch::kCPU, torch::kCPU}, inherited);
    ASSERT_EQ(rest[0].error, "");
    const RankLoss& loss = rest[0].bequest.losses.at(0);
    EXPECT_EQ(loss.state, loss.resumed_from > 0 ? "memory" : "start");
    EXPECT_LE(loss.step - loss.resumed_from, 1);  // it may be lost while the copies of the last step are made
    EXPECT_LT(((rest[0].weight - whole).norm() / whole.norm()).item<double>(), 1e-6);
  }
}

// A library of the devices' maker may hang where a rank is lost; memory of the host shows it at once.
TEST_F(TrainerOnDevices, RunsThatMayLoseRanksExchangeThroughMemoryOfTheHost) {
  testing::use_standin_library();
  job_.elastic.ranks_lost = 1;
  const int calls = comm::standin_library_calls();
  const auto reports = run(torch::Device(torch::kXPU, 1), [] {}, torch::Device(torch::kXPU, 0));
  ASSERT_TRUE(reports[0]) << reports[0].error().message;
  EXPECT_EQ(comm::standin_library_calls(), calls);
  EXPECT_EQ(reports[0]->collectives.why_not,
            "elastic.ranks_lost is set: memory of the host shows at once that a rank is lost");
}

}  // namespace
}  // namespace remuda::train
