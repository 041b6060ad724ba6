// What whole runs on a device need of its memory and of the host's, beside what they compute with.
#include <gtest/gtest.h>

#include "train/testing/standin/library.h"
#include "train/testing/trainer_on_devices.h"

namespace remuda::train {
namespace {

using testing::configure_standin;
using testing::TrainerOnDevices;

TEST_F(TrainerOnDevices, MemoryThatADriverDoesNotRegisterIsReported) {
  const auto registered = run(torch::Device(torch::kXPU, 0));
  configure_standin(0, {.refuses_to_register = true});
  const auto refused = run(torch::Device(torch::kXPU, 0));
  ASSERT_TRUE(registered[0] && refused[0]);
  const auto of = [](const RunReport& report, size_t rank) { return to_json(report)["devices"][rank]; };
  for (const size_t rank : {0u, 1u}) EXPECT_FALSE(of(*registered[0], rank).contains("unregistered"));
  EXPECT_FALSE(of(*refused[0], 0).contains("unregistered")) << "a CPU";
  const Json unregistered = of(*refused[0], 1)["unregistered"];
  EXPECT_GE(unregistered["bytes"].get<double>(), 2 * 4 * 5 * kPixels * kPixels) << "values and gradients";
  EXPECT_EQ(unregistered["why"], "operation not supported (error 801)");
  EXPECT_EQ(refused[0]->loss_per_epoch, registered[0]->loss_per_epoch) << "slower, but as right";
}

/// A device that has room for the model, its gradients and its state, but not for the model twice.
TEST_F(TrainerOnDevices, ADeviceIsMeasuredWithoutASecondCopyOfTheModel) {
  constexpr int kHidden = 4096;
  constexpr size_t kWeight = 4 * kPixels * kPixels * kHidden;  // bytes
  torch::jit::Module module("wide");
  const auto add = [&](const char* name, int rows, int columns) {
    const auto values = torch::arange(rows * columns, torch::kFloat).sin().mul(0.01).view({rows, columns});
    module.register_parameter(name, values.detach().requires_grad_(), false);
  };
  add("up", kHidden, kPixels * kPixels);
  add("down", 5, kHidden);
  module.define(
      "def forward(self, x):\n  x = torch.matmul(x.flatten(1), self.up.t())\n"
      "  return torch.matmul(x, self.down.t())\n");
  module.save(job_.model.path);
  job_.train.optimizer = job::Optimizer::adamw;
  job_.train.global_batch = 10;
  job_.train.max_steps = 2;
  // Values, gradients, and the gradient of a pass before it is added to them; of each of two ranks' parts two states,
  // their average and what an update needs. A copy would be the sixth of these.
  configure_standin(0, {.memory_cap = size_t(5.7 * kWeight)});
  const auto reports = run(torch::Device(torch::kXPU, 0));
  ASSERT_TRUE(reports[0]) << reports[0].error().message;
  ASSERT_TRUE(reports[1]) << reports[1].error().message;
  EXPECT_GT(reports[0]->devices[1].alone_samples_per_s(), 0);
}

/// Of a CPU and a device, and of two devices that their maker's library joins; what they learn is the same.
TEST_F(TrainerOnDevices, SwitchesOfTheEngineChangeNothingThatIsLearned) {
  constexpr job::Switch kOn = job::Switch::on;
  testing::use_standin_library();
  const torch::Device device(torch::kXPU, 0), other(torch::kXPU, 1);
  const auto mixed = run(device), joined = run(other, [] {}, device);
  job_.engine = {.separate_streams = kOn,
                 .equal_parts = kOn,
                 .bucket_by_latency = kOn,
                 .script_fusers = job::Switch::off,
                 .pinned_copies = kOn,
                 .fewer_waits = kOn};
  for (const int one : {0, 1}) configure_standin(one, {.pool = 3, .random_delay_s = 2e-4, .seed = unsigned(one)});
  job_.checkpoint = {.folder = folder_.path("kept"), .every_steps = 1};
  const auto mixed_so = run(device);
  job_.checkpoint = {};
  const int at_once = comm::standin_library_calls_of_all_parts();
  const auto joined_so = run(other, [] {}, device);
  for (const auto* reports : {&mixed, &mixed_so, &joined, &joined_so}) {
    ASSERT_TRUE((*reports)[0]) << (*reports)[0].error().message;
    ASSERT_TRUE((*reports)[1]) << (*reports)[1].error().message;
    for (size_t epoch = 0; epoch < 2; ++epoch)
      EXPECT_NEAR((*reports)[0]->loss_per_epoch[epoch], mixed[0]->loss_per_epoch[epoch], 1e-5);
    EXPECT_NEAR((*reports)[0]->test->loss, mixed[0]->test->loss, 1e-5);
  }
  EXPECT_GT(mixed_so[0]->checkpoints.written, 0);
  EXPECT_EQ(mixed_so[0]->checkpoints.failed, 0);
  EXPECT_GT(comm::standin_library_calls_of_all_parts(), at_once);
  EXPECT_EQ(joined[0]->collectives.bucket_bytes, 0);
  EXPECT_GE(joined_so[0]->collectives.bucket_bytes, 4 << 20);
  configure_standin(1, {});
}

}  // namespace
}  // namespace remuda::train
