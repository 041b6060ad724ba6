// What ends before something else does, or is not what a tutorial has: moved-from objects, steps that are left, modules
// that are taken over, parameters of unusual shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include "parallel/testing/ranks.h"
#include "train/testing/capped_memory.h"

namespace remuda::parallel {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace testing;

/// Whether its values are in memory of its own, which nobody else frees.
bool owns_memory(const torch::Tensor& tensor) { return tensor.storage().nbytes() == tensor.nbytes(); }

/// A step in which each weight's gradient is 1, of which one is given to each rank.
Step step_of_ones(DataParallel& parallel, const torch::nn::Module& module, double rate = 0.25) {
  parallel.begin(1);
  torch::Tensor sum = torch::zeros({});
  for (const auto& parameter : module.parameters()) sum = sum + parameter.sum();
  sum.backward();
  return parallel.step(rate);
}

TEST(Lifetime, MovedFromObjectsRefuseEveryCall) {
  auto model = make_linear();
  Group group = alone();
  DataParallel parallel(group, *model);
  DataParallel second = std::move(parallel);
  const Group kept = std::move(group);
  EXPECT_TRUE(step_of_ones(second, *model).applied);
  // NOLINTBEGIN(bugprone-use-after-move): what is left in them is what is tested
  EXPECT_THAT(refusal([&] { parallel.my_part(1); }), StartsWith("this DataParallel was moved from"));
  EXPECT_NE(refusal([&] { parallel.accumulate(1); }), "");
  EXPECT_NE(refusal([&] { parallel.begin(1); }), "");
  EXPECT_NE(refusal([&] { parallel.backward(model->weight.sum()); }), "");
  EXPECT_NE(refusal([&] { parallel.give_up(); }), "");
  EXPECT_NE(refusal([&] { parallel.step(0.1); }), "");
  EXPECT_NE(refusal([&] { parallel.swap_average(); }), "");
  EXPECT_NE(refusal([&] { parallel.average_buffers(); }), "");
  EXPECT_NE(refusal([&] { parallel.check(); }), "");
  EXPECT_NE(refusal([&] { (void)parallel.precision(); }), "");
  EXPECT_NE(refusal([&] { (void)parallel.state_bytes(); }), "");
  EXPECT_NE(refusal([&] { (void)parallel.device_library(); }), "");
  EXPECT_NE(refusal([&] { const Autocast autocast(parallel); }), "");
  EXPECT_THAT(refusal([&] { (void)group.rank(); }), StartsWith("this Group was moved from"));
  EXPECT_NE(refusal([&] { (void)group.size(); }), "");
  EXPECT_NE(refusal([&] { (void)group.device(); }), "");
  EXPECT_NE(refusal([&] { (void)group.transport(); }), "");
  EXPECT_NE(refusal([&] { (void)group.shares(); }), "");
  EXPECT_NE(refusal([&] { (void)group.sum({1}); }), "");
  EXPECT_NE(refusal([&] { group.barrier(); }), "");
  EXPECT_NE(refusal([&] { group.set_timeout(1); }), "");
  EXPECT_NE(refusal([&] { DataParallel(group, *model); }), "");
  // NOLINTEND(bugprone-use-after-move)
}

TEST(Lifetime, BackwardBelongsIntoAStep) {
  auto model = make_linear();
  DataParallel parallel(alone(), *model);
  EXPECT_THAT(refusal([&] { parallel.backward(model->weight.sum()); }), HasSubstr("outside of a step"));
  EXPECT_TRUE(step_of_ones(parallel, *model).applied);
  EXPECT_THAT(refusal([&] { parallel.backward(model->weight.sum()); }), HasSubstr("outside of a step"));
}

/// As those of a generator and a discriminator.
TEST(Lifetime, TwoModelsTakeTurnsInOneGroup) {
  run_ranks(2, [](const Group& group) {
    auto first = make_linear(1), second = make_linear(2);
    DataParallel one(group, *first);
    DataParallel other(group, *second);
    one.accumulate(0);
    EXPECT_TRUE(step_of_ones(other, *second).applied);
    EXPECT_TRUE(step_of_ones(one, *first).applied);
    one.begin(1);
    EXPECT_THAT(refusal([&] { other.begin(1); }), HasSubstr("begin() of another DataParallel was called between"));
    (first->weight.sum() + first->bias.sum()).backward();
    EXPECT_TRUE(one.step(0.25).applied);
    EXPECT_TRUE(first->weight.eq(0.5).all().item<bool>());
    EXPECT_TRUE(second->weight.eq(1.75).all().item<bool>());
  });
}

TEST(Lifetime, ANewOneTakesTheModuleOver) {
  auto model = make_linear(1);
  DataParallel parallel(alone(), *model);
  step_of_ones(parallel, *model);
  model->bias.requires_grad_(false);
  parallel = DataParallel(alone(), *model);
  EXPECT_TRUE(step_of_ones(parallel, *model).applied);
  EXPECT_TRUE(model->weight.eq(0.5).all().item<bool>());
  EXPECT_TRUE(model->bias.eq(0.75).all().item<bool>());
}

TEST(Lifetime, OneWhoseModuleWasTakenOverDoesNotDisturbTheOther) {
  auto model = make_linear(1);
  DataParallel first(alone(), *model);
  {
    DataParallel second(alone(), *model);
    EXPECT_THAT(refusal([&] { first.accumulate(1); }), HasSubstr("weight was given other memory"));
    EXPECT_THAT(refusal([&] { first.begin(1); }), HasSubstr("weight was given other memory"));
    EXPECT_TRUE(step_of_ones(second, *model).applied);
  }
  EXPECT_TRUE(owns_memory(model->weight));
  EXPECT_TRUE(model->weight.eq(0.75).all().item<bool>());
}

TEST(Lifetime, AStepThatIsLeftLeavesTheModelWhole) {
  auto model = make_linear(1);
  const Group group = alone();
  {
    DataParallel parallel(group, *model);
    parallel.begin(1);
    model->weight.sum().backward();
  }
  EXPECT_TRUE(owns_memory(model->weight));
  EXPECT_FALSE(model->weight.grad().defined());
  group.barrier();
  DataParallel again(group, *model);
  EXPECT_TRUE(step_of_ones(again, *model).applied) << "a group of one waits for nobody";
}

/// Its group ends with it, as its process would.
TEST(Lifetime, AnExceptionInTheStepOfOneRankEndsThatOfTheOthers) {
  std::vector<std::string> sentences(3);
  std::vector<int> peers(3, -1);
  EXPECT_THROW(run_ranks(3,
                         [&](const Group& group) {
                           auto model = make_linear();
                           DataParallel parallel(group, *model);
                           parallel.begin(1);
                           if (group.rank() == 1) throw std::logic_error("a bug of the user's");
                           try {
                             (model->weight.sum() + model->bias.sum()).backward();
                             parallel.step(0.1);
                           } catch (const Error& error) {
                             sentences[size_t(group.rank())] = error.what();
                             peers[size_t(group.rank())] = error.peer();
                             EXPECT_EQ(error.kind(), Error::Kind::lost_peer);
                             EXPECT_THAT(refusal([&] { group.barrier(); }), HasSubstr("rank 1 ")) << "not a step";
                           }
                         }),
               std::logic_error);
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(peers[rank], 1);
    EXPECT_THAT(sentences[rank], StartsWith("rank 1 "));
  }
}

TEST(Lifetime, AGroupWhoseStepWasLeftIsNotUsedAnyMore) {
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    {
      DataParallel parallel(group, *model);
      parallel.begin(1);
    }
    EXPECT_THAT(refusal([&] { group.barrier(); }),
                HasSubstr("Group::barrier() was called after a DataParallel ended between begin() and step()"));
    EXPECT_THAT(refusal([&] { DataParallel(group, *model); }), HasSubstr("the group cannot be used any more"));
    EXPECT_TRUE(owns_memory(model->weight));
  });
}

/// The state of AdamW needs more memory than there is.
TEST(Lifetime, AModelThatDoesNotFitStaysWhole) {
  const train::testing::CappedMemory memory;
  torch::nn::Linear model(1000, 100);
  torch::nn::init::ones_(model->weight);
  Options options;
  options.optimizer = AdamW{};
  train::testing::Budget budget;
  budget.cap = 600'000;
  {
    const train::testing::OnDevice device(budget);
    EXPECT_THROW(DataParallel(alone(), *model, options), c10::Error);
  }
  EXPECT_TRUE(owns_memory(model->weight));
  EXPECT_FALSE(model->weight.grad().defined());
  EXPECT_EQ(model->weight.sum().item<float>(), 100'000);
}

TEST(UnusualModules, WithoutParametersAreRefused) {
  torch::nn::Module empty;
  EXPECT_THAT(refusal([&] { DataParallel(alone(), empty); }), HasSubstr("no parameter that requires a gradient"));
  torch::jit::Module script("buffers");
  script.register_buffer("mean", torch::ones({3}));
  EXPECT_THAT(refusal([&] { DataParallel(alone(), script); }), HasSubstr("no parameter that requires a gradient"));
}

struct Pair final : torch::nn::Module {
  Pair(const torch::Tensor& first, const torch::Tensor& second) {
    register_parameter("first", first);
    register_parameter("second", second);
  }
};

TEST(UnusualModules, TiedParametersAreOne) {
  const auto shared = torch::ones({5}, torch::requires_grad());
  Pair pair(shared, shared);
  DataParallel parallel(alone(), pair);
  parallel.begin(1);
  (pair.parameters()[0].sum() + pair.parameters()[1].sum()).backward();
  EXPECT_TRUE(parallel.step(0.25).applied);
  EXPECT_TRUE(shared.eq(0.5).all().item<bool>());
}

TEST(UnusualModules, TwoParametersInOneMemoryAreRefused) {
  const auto one = torch::ones({5});
  Pair pair(one.detach(), one.view({5, 1}));
  EXPECT_EQ(refusal([&] { DataParallel(alone(), pair); }),
            "first and second are two tensors in the same memory; to tie them, use one tensor for both");
}

TEST(UnusualModules, PartsOfOneMemoryAreTrained) {
  const auto whole = torch::ones({2, 4});
  Pair pair(whole[0].detach(), whole[1].detach());
  DataParallel parallel(alone(), pair);
  EXPECT_TRUE(step_of_ones(parallel, pair).applied);
  EXPECT_TRUE(pair.parameters()[1].eq(0.75).all().item<bool>());
}

TEST(UnusualModules, TransposedParametersKeepTheirValues) {
  run_ranks(2, [](const Group& group) {
    const auto values = torch::arange(6, torch::kFloat).view({2, 3});
    Pair pair(values.clone().t(), torch::ones({1, 2, 4, 4}).contiguous(torch::MemoryFormat::ChannelsLast));
    {
      DataParallel parallel(group, pair);
      EXPECT_TRUE(pair.parameters()[0].equal(values.t()));
      EXPECT_TRUE(step_of_ones(parallel, pair).applied);
    }
    EXPECT_TRUE(pair.parameters()[0].equal(values.t() - 0.25));
    EXPECT_TRUE(pair.parameters()[1].eq(0.75).all().item<bool>());
  });
}

TEST(UnusualModules, EmptyParametersAreNoTrouble) {
  Options small_buckets;
  small_buckets.bucket_mib = 1e-6;
  for (const Options& options : {Options{}, small_buckets})
    run_ranks(2, [&](const Group& group) {
      torch::nn::Module module;
      for (const int64_t size : {0, 3, 0, 0, 5, 0})
        module.register_parameter("p" + std::to_string(module.parameters().size()), torch::ones({size}));
      {
        DataParallel parallel(group, module, options);
        EXPECT_TRUE(step_of_ones(parallel, module).applied);
        parallel.check();
      }
      for (const auto& parameter : module.parameters()) EXPECT_TRUE(parameter.eq(0.75).all().item<bool>());
    });
}

TEST(UnusualModules, WithNothingButEmptyParametersHaveSteps) {
  run_ranks(2, [](const Group& group) {
    torch::nn::Module module;
    module.register_parameter("empty", torch::ones({0, 3}));
    DataParallel parallel(group, module);
    EXPECT_EQ(step_of_ones(parallel, module).norm, 0);
  });
}

TEST(UnusualModules, LayersWithoutABiasAreTrained) {
  torch::nn::Linear model(torch::nn::LinearOptions(3, 1).bias(false));
  DataParallel parallel(alone(), *model);
  parallel.begin(1);
  model->forward(torch::ones({1, 3})).sum().backward();
  EXPECT_TRUE(parallel.step(0.1).applied);
}

}  // namespace
}  // namespace remuda::parallel
