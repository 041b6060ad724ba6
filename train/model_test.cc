#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/script.h>
#include <tuple>

#include "base/testing/scratch_folder.h"
#include "train/model/make_model.h"
#include "train/testing/cases.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;

TEST(Models, GiveAScorePerClassAndImage) {
  for (const auto norm : {job::Norm::group, job::Norm::batch}) {
    const job::ModelSpec spec{.name = "resnet", .width = 8, .depth = 2, .norm = norm};
    for (const int size : {28, 32}) {
      auto model = make_model(spec, {3, size, size, 10, 0}).value();
      EXPECT_EQ(model->forward(torch::randn({4, 3, size, size})).sizes(), (std::vector<int64_t>{4, 10}));
      EXPECT_EQ(model->buffers().empty(), norm == job::Norm::group);
    }
  }
}

TEST(Models, GptSeesNoFutureTokens) {
  const auto gpt_case = testing::model_cases()[2];
  auto model = testing::make_seeded(gpt_case, torch::kDouble);
  const auto tokens = torch::randint(1, 23, {1, 12}, torch::kLong);
  auto changed = tokens.clone();
  changed[0][7] = (tokens[0][7].item<int64_t>() + 1) % 23;
  const auto a = model->forward(tokens), b = model->forward(changed);
  EXPECT_TRUE(a.narrow(1, 0, 7).allclose(b.narrow(1, 0, 7)));
  EXPECT_FALSE(a.narrow(1, 7, 1).allclose(b.narrow(1, 7, 1)));
}

TEST(Models, TiedWeightsAreTrainedOnce) {
  const auto gpt_case = testing::model_cases()[2];
  auto model = testing::make_seeded(gpt_case, torch::kFloat);
  int vocabulary_sized = 0;
  for (const auto& parameter : model->parameters()) vocabulary_sized += parameter.size(0) == 23;
  EXPECT_EQ(vocabulary_sized, 1) << "the output layer is the token embedding";
}

TEST(Models, UnknownNameListsTheKnownOnes) {
  const auto model = make_model({.name = "vgg"}, {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message, "unknown model 'vgg'; known are mlp, resnet and gpt");
}

TEST(Models, TorchScriptFileTrains) {
  const ScratchFolder folder;
  const std::string path = folder.path("linear.pt");
  torch::jit::Module module("linear");
  module.register_parameter("weight", torch::zeros({5, 64}, torch::requires_grad()), false);
  module.define("def forward(self, x):\n  return torch.matmul(x.flatten(1), self.weight.t())\n");
  module.save(path);
  auto model = make_model({.path = path}, {}).value();
  ASSERT_EQ(model->parameters().size(), 1u);
  model->forward(torch::ones({2, 1, 8, 8})).sum().backward();
  EXPECT_TRUE(model->parameters()[0].grad().eq(2).all().item<bool>());
}

TEST(Models, FileThatIsNoTorchScriptIsNamed) {
  const ScratchFolder folder;
  const std::string path = folder.write("not-a-model.pt", "hello");
  const auto model = make_model({.path = path}, {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::usage);
  EXPECT_THAT(model.error().message, HasSubstr("cannot load " + path + " as a TorchScript model"));
}

TEST(Models, AnOperatorThatThisLibtorchLacksIsNamedWithItsLine) {
  const ScratchFolder folder;
  const std::string path = folder.path("newer.pt");
  {
    const auto known =
        torch::RegisterOperators().op("remuda_test::gone(Tensor x) -> Tensor", [](torch::Tensor x) { return x; });
    torch::jit::Module module("newer");
    module.register_parameter("weight", torch::zeros({5, 64}, torch::requires_grad()), false);
    const auto graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR("graph(%self, %x):\n  %y : Tensor = remuda_test::gone(%x)\n  return (%y)\n", graph.get());
    graph->inputs()[0]->setType(module.type());
    module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
        c10::QualifiedName(*module.type()->name(), "forward"), graph));
    module.save(path);
  }
  const auto model = make_model({.path = path}, {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::usage);
  EXPECT_THAT(model.error().message,
              ::testing::StartsWith("cannot load " + path + " as a TorchScript model, with libtorch "));
  EXPECT_THAT(model.error().message, HasSubstr(": Unknown builtin op: remuda_test::gone (code/__torch__.py, line "));
}

TEST(Models, TorchScriptIsFusedUnlessTheJobSaysNo) {
  const ScratchFolder folder;
  torch::jit::Module module("linear");
  module.register_parameter("weight", torch::ones({2, 3}, torch::requires_grad()), false);
  module.define("def forward(self, x):\n  return torch.matmul(x, self.weight.t())\n");
  module.save(folder.path("model.pt"));
  const job::ModelSpec spec{.path = folder.path("model.pt")};
  ASSERT_TRUE(make_model(spec, {}, {}, {.script_fusers = job::Switch::off}));
  EXPECT_FALSE(torch::jit::tensorExprFuserEnabled());
  ASSERT_TRUE(make_model(spec, {}));
  EXPECT_TRUE(torch::jit::tensorExprFuserEnabled());
}

/// What gpt computes on GPUs, beside what it computes elsewhere. 2e-6 relative, float32: sums in another order.
TEST(Models, FusedAttentionIsTheSameExceptForRounding) {
  std::vector<torch::Tensor> inputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(torch::randn({3, 4, 20, 8}, torch::requires_grad()));
  const auto& [q, k, v] = std::tie(inputs[0], inputs[1], inputs[2]);
  const auto mask = torch::full({20, 20}, -INFINITY).triu(1);
  const auto plain = torch::matmul((torch::matmul(q / std::sqrt(8.0), k.transpose(-2, -1)) + mask).softmax(-1), v);
  const auto fused = fused_attention(q, k, v);
  std::vector<std::vector<torch::Tensor>> all;
  for (const torch::Tensor& mixed : {plain, fused}) {
    for (const torch::Tensor& input : inputs) input.mutable_grad() = torch::Tensor();
    mixed.square().sum().backward();
    all.push_back({mixed.detach(), q.grad(), k.grad(), v.grad()});
  }
  for (size_t i = 0; i < all[0].size(); ++i)
    EXPECT_LT(((all[0][i] - all[1][i]).norm() / all[0][i].norm()).item<double>(), 2e-6) << i;
}

}  // namespace
}  // namespace remuda::train
