#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parallel/parts.h"
#include "parallel/testing/ranks.h"

namespace remuda::parallel {
namespace {

using ::testing::HasSubstr;
using namespace testing;

TEST(DataParallel, CallsInTheWrongOrderAreRefused) {
  auto model = make_linear();
  const Group group = alone();
  DataParallel parallel(group, *model);
  EXPECT_THAT(refusal([&] { parallel.step(0.1); }), HasSubstr("step() was called without begin()"));
  EXPECT_THAT(refusal([&] { parallel.give_up(); }), HasSubstr("give_up() was called outside of a step"));
  parallel.begin(1);
  EXPECT_THAT(refusal([&] { parallel.begin(1); }), HasSubstr("begin() was called twice"));
  EXPECT_THAT(refusal([&] { parallel.accumulate(1); }),
              HasSubstr("accumulate() was called between begin() and step()"));
  EXPECT_THAT(refusal([&] { parallel.my_part(8); }), HasSubstr("my_part() was called between begin() and step()"));
  EXPECT_THAT(refusal([&] { group.barrier(); }), HasSubstr("Group::barrier() was called between begin() and step()"));
  EXPECT_THAT(refusal([&] { group.sum({1}); }), HasSubstr("belongs between steps"));
  EXPECT_THAT(refusal([&] { DataParallel(group, *model); }), HasSubstr("between begin() and step()"));
  EXPECT_THAT(refusal([&] { parallel.step(0.1, torch::zeros({2})); }), HasSubstr("the loss has 2 elements"));
  EXPECT_THAT(refusal([&] { parallel.step(NAN); }), HasSubstr("the learning rate is nan"));
  (model->weight.sum() + model->bias.sum()).backward();
  EXPECT_TRUE(parallel.step(0.1).applied);
  EXPECT_THAT(refusal([&] { parallel.begin(-1); }), HasSubstr("the weight -1 is no number of losses"));
  EXPECT_THAT(refusal([&] { parallel.my_part(0); }), HasSubstr("a batch of 0 samples"));
  EXPECT_THAT(refusal([&] { parallel.swap_average(); }), HasSubstr("Options::average is 0"));
}

TEST(DataParallel, WrongBackwardPassesAreRefusedOnAllRanks) {
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    parallel.begin(1);
    (model->weight.sum() + model->bias.sum()).backward();
    if (group.rank() == 1) model->weight.sum().backward();
    EXPECT_THAT(refusal([&] { parallel.step(0.1); }),
                HasSubstr("on rank 1 the gradient of a parameter became ready twice"));
  });
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    parallel.begin(1);
    if (group.rank() == 1) model->weight.mutable_grad() = torch::Tensor();
    (model->weight.sum() + model->bias.sum()).backward();
    EXPECT_THAT(refusal([&] { parallel.step(0.1); }), HasSubstr("on rank 1 a gradient was reset or replaced"));
  });
}

/// A model of two layers, which `change` changes after the start.
std::string refusal_after(const std::function<void(torch::nn::Sequential&)>& change) {
  torch::nn::Sequential model(torch::nn::Linear(2, 2), torch::nn::Linear(2, 1));
  DataParallel parallel(alone(), *model);
  change(model);
  return refusal([&] { parallel.begin(1); });
}

TEST(DataParallel, ModelThatChangedIsRefused) {
  EXPECT_EQ(refusal_after([](auto&) {}), "");
  EXPECT_THAT(refusal_after([](auto& model) { model->push_back(torch::nn::Linear(1, 1)); }),
              HasSubstr("the model has changed since DataParallel was made: 2.weight was added"));
  EXPECT_THAT(refusal_after([](auto& model) {
                model->template at<torch::nn::LinearImpl>(0).register_parameter("more", torch::ones({1}));
              }),
              HasSubstr("0.more was added"));
  EXPECT_THAT(refusal_after([](auto& model) { model->to(torch::kDouble); }),
              HasSubstr("0.weight was Float and is Double"));
  EXPECT_THAT(refusal_after([](auto& model) { model->parameters()[1].requires_grad_(false); }),
              HasSubstr("0.bias requires no gradient any more"));
  EXPECT_THAT(refusal_after([](auto& model) { model->parameters()[2].set_data(torch::ones({1, 2})); }),
              HasSubstr("1.weight was given other memory"));
  EXPECT_THAT(refusal_after([](auto& model) { model->replace_module("0", torch::nn::Linear(2, 2)); }),
              HasSubstr("0.weight was replaced"));
}

TEST(DataParallel, ModelThatCannotBeTrainedIsRefused) {
  torch::nn::Linear frozen(2, 1);
  for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
  EXPECT_THAT(refusal([&] { DataParallel(alone(), *frozen); }), HasSubstr("no parameter that requires a gradient"));
  torch::nn::Linear half(2, 1);
  half->to(torch::kHalf);
  EXPECT_THAT(refusal([&] { DataParallel(alone(), *half); }), HasSubstr("parameters are Half"));
  torch::nn::Module elsewhere;
  elsewhere.register_parameter("weight", torch::empty({2}, torch::kMeta));
  EXPECT_THAT(refusal([&] { DataParallel(alone(), elsewhere); }),
              HasSubstr("weight is on meta, but this rank computes on cpu: call module.to(group.device()) first"));
}

TEST(Group, TakesTheLaunchersSharesWhereTheyAreForItsRanks) {
  using ::testing::ElementsAre;
  EXPECT_THAT(*launchers_shares("0.75,0.25", 2), ElementsAre(0.75, 0.25));
  EXPECT_THAT(*launchers_shares("", 2), ElementsAre(0.5, 0.5));
  EXPECT_THAT(*launchers_shares("0.75,0.25", 4), ElementsAre(0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT(*launchers_shares("0,0", 2), ElementsAre(0.5, 0.5));
  for (const char* wrong : {"a,b", "1,", "-1,2", "nan,1", "inf,1"})
    EXPECT_THAT(launchers_shares(wrong, 2).error().message, HasSubstr("it must be numbers with commas")) << wrong;
}

TEST(DataParallel, WrongOptionsAreRefused) {
  auto model = make_linear();
  const auto refused = [&](const std::function<void(Options&)>& change) {
    Options options;
    change(options);
    return refusal([&] { DataParallel(alone(), *model, options); });
  };
  EXPECT_THAT(refused([](Options& options) { options.average = 1; }), HasSubstr("Options::average is 1"));
  EXPECT_THAT(refused([](Options& options) { options.clip_norm = -1; }), HasSubstr("Options::clip_norm is -1"));
  EXPECT_THAT(refused([](Options& options) { options.weight_decay = NAN; }), HasSubstr("Options::weight_decay is nan"));
  EXPECT_THAT(refused([](Options& options) { options.bucket_mib = 0; }), HasSubstr("above 0"));
  EXPECT_THAT(refused([](Options& options) { options.shares = {1, 2}; }), HasSubstr("Options::shares has 2 values"));
  EXPECT_THAT(refused([](Options& options) { options.state_shares = {0}; }), HasSubstr("not all 0"));
}

}  // namespace
}  // namespace remuda::parallel
