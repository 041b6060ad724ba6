#include "train/model/recompute.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include "base/testing/scratch_folder.h"
#include "comm/testing/run_ranks.h"
#include "train/precision.h"
#include "train/testing/capped_memory.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;
using testing::make_batch;
using testing::ModelCase;

const auto kKept = job::Recompute::none, kRecomputed = job::Recompute::blocks;

/// Each built-in model, and one whose norms count batches.
std::vector<ModelCase> all_cases() {
  std::vector<ModelCase> cases = testing::model_cases();
  cases.pop_back();  // recomputed already
  ModelCase counting = cases[1];
  counting.name = "resnet_batch_norm";
  counting.spec.norm = job::Norm::batch;
  cases.push_back(counting);
  for (ModelCase some : {cases[2], counting}) {
    some.name += "_first_block";
    some.recompute_blocks = 1;
    cases.push_back(some);
  }
  return cases;
}

struct Outcome {
  std::vector<torch::Tensor> gradients, buffers;
};

/// Of a forward pass in `type`.
torch::Tensor loss_in(torch::ScalarType type, const ModelCase& model_case, Model& model, const Batch& batch) {
  torch::Tensor scores;
  {
    const Autocast autocast(torch::kCPU, type);
    scores = model.forward(batch.input);
  }
  return loss_sum(model_case.spec.loss, scores, batch.target, model_case.padding).sum;
}

Outcome outcome_of(ModelCase model_case, job::Recompute recompute, torch::ScalarType type) {
  model_case.recompute = recompute;
  const auto model = testing::make_seeded(model_case, torch::kFloat);
  for (int64_t step = 0; step < 2; ++step)
    loss_in(type, model_case, *model, make_batch(model_case, 8, step, torch::kFloat)).backward();
  return {testing::gradients(*model), model->buffers()};
}

class Recomputed : public ::testing::TestWithParam<ModelCase> {};

INSTANTIATE_TEST_SUITE_P(Models, Recomputed, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Recomputed, ModelsHaveTheBitsOfThoseThatKeepAll) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const Outcome kept = outcome_of(GetParam(), kKept, type), recomputed = outcome_of(GetParam(), kRecomputed, type);
    for (size_t i = 0; i < kept.gradients.size(); ++i)
      EXPECT_TRUE(recomputed.gradients.at(i).equal(kept.gradients[i])) << type << ", parameter " << i;
    for (size_t i = 0; i < kept.buffers.size(); ++i)
      EXPECT_TRUE(recomputed.buffers.at(i).equal(kept.buffers[i])) << type << ", buffer " << i;
  }
}

/// The gradient of `weight` through dropout, and the random number that is drawn afterwards.
std::pair<torch::Tensor, double> through_dropout(bool recompute) {
  torch::manual_seed(3);
  const auto weight = torch::ones({50}, torch::requires_grad());
  const Block block = [weight](const torch::Tensor& x) { return torch::dropout(x * weight, 0.5, true); };
  auto x = torch::ones({50});
  for (int i = 0; i < 3; ++i) x = recompute ? recomputed(block, x) : block(x);
  torch::rand({7});  // draws in between
  x.sum().backward();
  return {weight.grad(), torch::rand({}).item<double>()};
}

TEST(Recompute, DrawsTheSameRandomNumbersAndNoMore) {
  const auto kept = through_dropout(false), again = through_dropout(true);
  EXPECT_TRUE(again.first.equal(kept.first));
  EXPECT_GT(kept.first.max().item<double>(), kept.first.min().item<double>()) << "some were dropped";
  EXPECT_EQ(again.second, kept.second);
}

/// Autocast keeps its casts of weights; one that the first pass made has no gradient.
TEST(Recompute, AWeightIsTrainedOutsideOfTheBlockTooInShortPrecision) {
  std::vector<torch::Tensor> gradients;
  for (const bool recompute : {false, true}) {
    const auto weight = torch::eye(4).requires_grad_();
    const Block block = [weight](const torch::Tensor& x) { return torch::linear(x, weight); };
    torch::Tensor y;
    {
      const Autocast autocast(torch::kCPU, torch::kBFloat16);
      const auto x = torch::ones({1, 4});
      y = torch::linear(recompute ? recomputed(block, x) : block(x), weight);
    }
    y.to(torch::kFloat).sum().backward();
    gradients.push_back(weight.grad());
  }
  EXPECT_TRUE(gradients[1].equal(gradients[0])) << gradients[1];
}

TEST(Recompute, RunsTheBlockOnceWhereNothingNeedsAGradient) {
  int runs = 0;
  const Block block = [&runs](const torch::Tensor& x) { return ++runs, x * 2; };
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(recomputed(block, torch::ones({2})).eq(2).all().item<bool>());
  EXPECT_EQ(runs, 1);
}

/// What a block leaves behind when it throws in the second pass.
TEST(Recompute, LeavesBuffersAndRandomNumbersAloneWhenTheSecondPassFails) {
  const auto weight = torch::ones({3}, torch::requires_grad()), counter = torch::zeros({});
  int runs = 0;
  const Block block = [&](const torch::Tensor& x) {
    torch::Tensor(counter).add_(1);
    torch::rand({5});
    if (++runs == 2) throw std::runtime_error("the second pass fails");
    return x * weight;
  };
  const auto y = recomputed(block, torch::ones({3}), [&] { return std::vector{counter}; });
  torch::manual_seed(9);
  EXPECT_THROW(y.sum().backward(), std::runtime_error);
  EXPECT_EQ(counter.item<double>(), 1);
  const double next = torch::rand({}).item<double>();
  torch::manual_seed(9);
  EXPECT_EQ(next, torch::rand({}).item<double>());
  EXPECT_FALSE(in_recomputed_block());
}

/// A weight in two blocks and outside of them: its bucket waits for all three.
TEST(Recompute, ASharedWeightIsSentOnceItsWholeGradientIsThere) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto weight = torch::full({4}, 2.0, torch::requires_grad()), last = torch::ones({4}, torch::requires_grad());
    const auto backward = [&] {
      const Block block = [weight](const torch::Tensor& x) { return x * weight; };
      const auto x = recomputed(block, recomputed(block, torch::ones({4}) * last));
      (x * weight).sum().backward();
    };
    const auto parallel =
        DataParallel::create(communicator, testing::cpu_ops(), {weight, last}, backward, {.bucket_bytes = 1});
    ASSERT_TRUE(parallel) << parallel.error().message;
    for (int step = 0; step < 2; ++step) {
      (*parallel)->begin({.weight = 1});
      backward();
      const auto reduced = (*parallel)->reduce();
      ASSERT_TRUE(reduced) << reduced.error().message;
      EXPECT_TRUE(testing::whole_gradient(communicator, **parallel, {weight}, 0.5)[0].eq(3 * 2 * 2).all().item<bool>());
    }
    (*parallel)->begin({.weight = 1});
    backward();
    if (communicator.rank() == 1) backward();
    const auto twice = (*parallel)->reduce();
    ASSERT_FALSE(twice);
    EXPECT_THAT(twice.error().message, HasSubstr("on rank 1 the gradient of a parameter became ready twice"));
  });
}

/// The most that forward and backward of the model need, beside its parameters and their gradients.
size_t activations_of(ModelCase model_case, job::Recompute recompute, torch::ScalarType type = torch::kFloat) {
  model_case.recompute = recompute;
  const auto model = testing::make_seeded(model_case, torch::kFloat);
  const Batch batch = make_batch(model_case, 16, 1, torch::kFloat);
  const auto step = [&] { loss_in(type, model_case, *model, batch).backward(); };
  step();  // gradients are there before the first step
  testing::Budget budget;
  const testing::OnDevice device(budget);
  step();
  return budget.peak;
}

/// The model of examples/gpt.toml.
ModelCase gpt_example() {
  return {.name = "gpt",
          .spec = {.name = "gpt", .width = 128, .depth = 8, .heads = 4, .vocabulary = 256},
          .input = {.context = 64},
          .padding = 0};
}

TEST(Precision, Bf16CutsTheActivationsOfTheGptExample) {
  const testing::CappedMemory counted;
  const ModelCase gpt = gpt_example();
  const auto fp32 = double(activations_of(gpt, kKept)), bf16 = double(activations_of(gpt, kKept, torch::kBFloat16));
  EXPECT_LT(bf16, 0.75 * fp32) << bf16 / fp32;  // norms, residuals and softmax stay float32
  RecordProperty("part", std::to_string(bf16 / fp32));
}

// Of its eight layers one at a time is in memory.
TEST(Recompute, CutsTheActivationsOfTheGptExampleByTwoThirds) {
  const testing::CappedMemory counted;
  const ModelCase gpt = gpt_example();
  const auto kept = double(activations_of(gpt, kKept)), recomputed = double(activations_of(gpt, kRecomputed));
  EXPECT_LT(recomputed, 0.35 * kept) << recomputed / kept;
  RecordProperty("part", std::to_string(recomputed / kept));
}

TEST(Recompute, OfHalfTheBlocksKeepsHalfOfTheActivations) {
  const testing::CappedMemory counted;
  ModelCase gpt = gpt_example();
  const auto kept = double(activations_of(gpt, kKept)), recomputed = double(activations_of(gpt, kRecomputed));
  gpt.recompute_blocks = gpt.spec.depth / 2;
  const auto half = double(activations_of(gpt, kRecomputed));
  // What the last four keep is freed before the first of the others is computed again.
  EXPECT_LT(half, 0.6 * kept) << half / kept;
  EXPECT_GT(half, 1.5 * recomputed) << half / recomputed;
}

torch::jit::Module script(const std::string& type, const std::string& forward) {
  torch::jit::Module module("__torch__." + type);
  module.define("def forward(self, x):\n  " + forward + "\n");
  return module;
}

torch::jit::Module linear(const std::string& type, bool trained = true) {
  torch::jit::Module module("__torch__." + type);
  module.register_parameter("weight", torch::eye(6).mul_(0.5).add_(0.1).set_requires_grad(trained), false);
  module.define("def forward(self, x):\n  return torch.matmul(x, self.weight)\n");
  return module;
}

torch::jit::Module relu(const std::string& type) { return script(type, "return torch.relu(x)"); }

class ScriptBlocks : public ::testing::Test {
 protected:
  /// A file with a Sequential of these.
  std::string sequential(const std::vector<torch::jit::Module>& modules,
                         const std::string& type = "torch.nn.modules.container.___torch_mangle_3.Sequential") {
    torch::jit::Module model("__torch__." + type);
    std::string forward = "def forward(self, x):\n";
    for (size_t i = 0; i < modules.size(); ++i) {
      model.register_module("m" + std::to_string(i), modules[i]);
      forward += fmt::format("  x{} = self.m{}.forward(x{})\n", i + 1, i, i == 0 ? "" : std::to_string(i));
    }
    model.define(fmt::format("{}  return x{}\n", forward, modules.size()));
    const std::string path = folder_.path("sequential.pt");
    model.save(path);
    return path;
  }

  /// Trains two steps with recomputed blocks, and the bits of gradients and buffers are those without.
  static void expect_the_same_bits(const std::string& path) {
    std::vector<Outcome> outcomes;
    for (const auto recompute : {kKept, kRecomputed}) {
      const auto model = make_model({.path = path}, {}, {.recompute = recompute});
      ASSERT_TRUE(model) << model.error().message;
      for (int step = 0; step < 2; ++step)
        (*model)->forward(torch::linspace(-1, 1, 12).view({2, 6})).square().sum().backward();
      outcomes.push_back({testing::gradients(**model), (*model)->buffers()});
    }
    for (size_t i = 0; i < outcomes[0].gradients.size(); ++i)
      EXPECT_TRUE(outcomes[1].gradients.at(i).equal(outcomes[0].gradients[i])) << "parameter " << i;
    for (size_t i = 0; i < outcomes[0].buffers.size(); ++i)
      EXPECT_TRUE(outcomes[1].buffers.at(i).equal(outcomes[0].buffers[i])) << "buffer " << i;
  }

  const ScratchFolder folder_;
};

TEST_F(ScriptBlocks, WithNothingToTrainAtTheBeginning) {
  expect_the_same_bits(
      sequential({script("Flatten", "return torch.flatten(x, 1)"), linear("A"), relu("R"), linear("B")}));
  expect_the_same_bits(sequential({linear("Frozen", false), linear("A"), linear("FrozenToo", false), linear("B")}));
}

TEST_F(ScriptBlocks, ThatShareALayerHaveTheSameBits) {
  const auto shared = linear("A");
  expect_the_same_bits(sequential({shared, relu("R"), linear("B"), relu("S"), shared, relu("T"), shared}));
}

TEST_F(ScriptBlocks, MayPassTuplesWithinABlock) {
  torch::jit::Module two("__torch__.Two");
  two.register_parameter("weight", torch::ones({6}, torch::requires_grad()), false);
  two.define("def forward(self, x):\n  return (x * self.weight, x)\n");
  torch::jit::Module take("__torch__.Take");
  take.define("def forward(self, x: Tuple[Tensor, Tensor]):\n  return x[0] + x[1]\n");
  expect_the_same_bits(sequential({linear("A"), two, take, linear("B")}));
}

TEST_F(ScriptBlocks, GiveOneTensor) {
  const auto pair = script("Pair", "return (x, x)");
  const auto model = make_model({.path = sequential({linear("A"), pair})}, {}, {.recompute = kRecomputed}).value();
  try {
    model->forward(torch::ones({2, 6}));
    ADD_FAILURE() << "gave a tuple";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "a block that is to be recomputed or sharded gives a Tuple; it must give one tensor");
  }
}

TEST_F(ScriptBlocks, ThatReplaceTheirBuffersCountABatchOnce) {
  torch::jit::Module counter("__torch__.Counter");
  counter.register_parameter("weight", torch::ones({6}, torch::requires_grad()), false);
  counter.register_buffer("seen", torch::zeros({}));
  counter.define("def forward(self, x):\n  self.seen = self.seen + 1\n  return x * self.weight\n");
  expect_the_same_bits(sequential({linear("A"), counter, linear("B")}));
}

TEST_F(ScriptBlocks, ThatChangeTheirInputAreRefused) {
  torch::jit::Module leaky("__torch__.Leaky");
  leaky.register_parameter("weight", torch::eye(6).set_requires_grad(true), false);
  leaky.define("def forward(self, x):\n  torch.leaky_relu_(x, 0.5)\n  return torch.matmul(x, self.weight)\n");
  for (const auto& modules : {std::vector{leaky, linear("A")}, std::vector{linear("A"), leaky}}) {
    const auto model = make_model({.path = sequential(modules)}, {}, {.recompute = kRecomputed}).value();
    try {
      model->forward(torch::linspace(-1, 1, 12).view({2, 6})).square().sum().backward();
      ADD_FAILURE() << "changed its input twice";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("changes its input in place"));
    }
  }
}

TEST_F(ScriptBlocks, AreKeptAfterTheFirstOnes) {
  const std::string path = sequential({linear("A"), relu("R"), linear("B"), relu("S"), linear("C")});
  for (const int count : {1, 2, 3, 9}) {
    const auto model = make_model({.path = path}, {}, {.recompute = kRecomputed, .recompute_blocks = count}).value();
    const auto kept = make_model({.path = path}, {}).value();
    const auto x = torch::linspace(-1, 1, 12).view({2, 6});
    const auto scores = model->forward(x), expected = kept->forward(x);
    EXPECT_THAT(scores.grad_fn()->name(), HasSubstr(count < 3 ? "Mm" : "Recompute")) << count;
    scores.square().sum().backward();
    expected.square().sum().backward();
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(testing::gradients(*model).at(i).equal(testing::gradients(*kept).at(i))) << count << " " << i;
  }
}

TEST_F(ScriptBlocks, OfASequentialAreRecomputed) {
  const std::string path = sequential({linear("A"), relu("R"), linear("B"), relu("S"), linear("C"), relu("T")});
  std::vector<std::vector<torch::Tensor>> gradients;
  for (const auto recompute : {kKept, kRecomputed}) {
    const auto model = make_model({.path = path}, {}, {.recompute = recompute});
    ASSERT_TRUE(model) << model.error().message;
    const auto x = torch::linspace(-1, 1, 12).view({2, 6});
    const auto scores = (*model)->forward(x);
    EXPECT_THAT(scores.grad_fn()->name(), HasSubstr(recompute == kKept ? "Relu" : "Recompute"));
    scores.square().sum().backward();
    gradients.push_back(testing::gradients(**model));
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(gradients[1].at(i).equal(gradients[0].at(i))) << i;
}

/// Its forward pass may be anything.
TEST_F(ScriptBlocks, OfAClassThatIsCalledSequentialTooAreRefused) {
  const auto refused =
      make_model({.path = sequential({linear("A")}, "mine.Sequential")}, {}, {.recompute = kRecomputed});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is none: leave the key out"));
}

TEST_F(ScriptBlocks, OfAnotherModelAreRefused) {
  torch::jit::Module model("__torch__.Mine");
  model.register_parameter("weight", torch::ones({3}, torch::requires_grad()), false);
  model.define("def forward(self, x):\n  return x * self.weight\n");
  const std::string path = folder_.path("mine.pt");
  model.save(path);
  const auto refused = make_model({.path = path}, {}, {.recompute = kRecomputed});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_EQ(refused.error().message,
            "memory.recompute = \"blocks\" is for models that are a torch.nn.Sequential, but " + path +
                " is none: leave the key out");
  EXPECT_TRUE(make_model({.path = path}, {}, {.recompute = kKept}));
}

}  // namespace
}  // namespace remuda::train
