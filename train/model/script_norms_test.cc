#include "train/model/script_norms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda::train {
namespace {

torch::jit::Module with_buffers(const std::string& name) {
  torch::jit::Module module(name);
  module.register_buffer("running_mean", torch::zeros({2}));
  module.register_buffer("running_var", torch::ones({2}));
  module.register_attribute("training", c10::BoolType::get(), true);
  return module;
}

TEST(ScriptNorms, AModulesOwnMomentumCounts) {
  torch::jit::Module model("model");
  for (const double momentum : {0.25, 0.5}) {
    torch::jit::Module norm = with_buffers("__torch__.torch.nn.modules.batchnorm.___torch_mangle_3.BatchNorm1d");
    norm.register_buffer("num_batches_tracked", torch::zeros({}, torch::kLong));
    norm.register_attribute("momentum", c10::FloatType::get(), momentum);
    model.register_module(momentum == 0.25 ? "first" : "second", norm);
  }
  torch::jit::Module cumulative = with_buffers("__torch__.torch.nn.modules.instancenorm.InstanceNorm1d");
  cumulative.register_buffer("num_batches_tracked", torch::zeros({}, torch::kLong));
  cumulative.register_attribute("momentum", c10::NoneType::get(), c10::IValue());
  model.register_module("third", cumulative);
  model.register_module("fourth", torch::jit::Module("no_norm"));
  const auto norms = script_norms(model);
  ASSERT_EQ(norms.size(), 3u);
  EXPECT_EQ(norms[0].momentum, 0.25);
  EXPECT_EQ(norms[1].momentum, 0.5);
  EXPECT_EQ(norms[2].momentum, std::nullopt) << "all batches count the same";
  for (const NormStatistics& norm : norms) EXPECT_TRUE(norm.is_known && norm.batches.defined());
  EXPECT_TRUE(norms[1].mean.is_same(model.attr("second").toModule().attr("running_mean").toTensor()));
}

/// Keras, for one, calls what is kept of the statistics their momentum.
TEST(ScriptNorms, WhatAnotherModuleCallsItsMomentumIsNotBelieved) {
  torch::jit::Module norm = with_buffers("__torch__.my.BatchNorm1d");
  norm.register_buffer("num_batches_tracked", torch::zeros({}, torch::kLong));
  norm.register_attribute("momentum", c10::FloatType::get(), 0.9);
  norm.define("def forward(self, x):\n  return x - self.running_mean\n");
  const auto norms = script_norms(norm);
  ASSERT_EQ(norms.size(), 1u);
  EXPECT_FALSE(norms[0].is_known);
}

TEST(ScriptNorms, ElseThatOfTheProgram) {
  torch::jit::Module inner = with_buffers("inner");
  inner.define(R"(
def forward(self, x):
  if self.training:
    x = torch.batch_norm(x, None, None, self.running_mean, self.running_var, True, 0.3, 1e-5, False)
  return x
)");
  torch::jit::Module model = with_buffers("model");
  model.register_module("inner", inner);
  model.register_attribute("rate", c10::FloatType::get(), 0.7);
  model.define(R"(
def forward(self, x):
  x = self.inner.forward(x)
  return torch.batch_norm(x, None, None, self.running_mean, self.running_var, self.training, self.rate, 1e-5, False)
)");
  const auto norms = script_norms(model);
  ASSERT_EQ(norms.size(), 2u);
  const size_t own = norms[0].mean.is_same(model.attr("running_mean").toTensor()) ? 0 : 1;
  EXPECT_EQ(norms[1 - own].momentum, 0.3);
  EXPECT_TRUE(norms[1 - own].is_known);
  EXPECT_FALSE(norms[own].is_known) << "it may be another one each time";
}

TEST(ScriptNorms, BuffersOfOtherKindsAreNone) {
  torch::jit::Module model("model");
  model.register_buffer("running_mean", torch::zeros({2}));
  model.define("def forward(self, x):\n  return x\n");
  EXPECT_TRUE(script_norms(model).empty());
}

}  // namespace
}  // namespace remuda::train
