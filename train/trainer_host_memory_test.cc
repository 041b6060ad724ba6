// What whole runs on a device need of its memory and of the host's, beside what they compute with.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace remuda::train
