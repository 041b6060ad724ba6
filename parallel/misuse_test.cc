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

TEST(DataParallel, ABackwardBeforeBeginIsRefusedOnAllRanks) {
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    const auto backward = [&] { (model->weight.sum() + model->bias.sum()).backward(); };
    parallel.begin(group.rank());  // without samples there is no backward()
    if (group.rank() == 1) backward();
    EXPECT_TRUE(parallel.step(0.1).applied);
    if (group.rank() == 1) backward();
    parallel.begin(1);
    if (group.rank() == 0) backward();
    EXPECT_THAT(refusal([&] { parallel.step(0.1); }), HasSubstr("on rank 1 losses were reported by begin(), but no"));
  });
}

TEST(DataParallel, ALossThatIsAMeanIsRefusedOnAllRanks) {
  namespace F = torch::nn::functional;
  const auto scores_of = [](torch::nn::Linear& model) { return model->forward(make_batch(4).inputs); };
  const auto refused = [&](const std::function<torch::Tensor(const torch::Tensor&)>& loss_of, double weight = 4) {
    std::string sentence;
    run_ranks(2, [&](const Group& group) {
      auto model = make_linear();
      DataParallel parallel(group, *model);
      parallel.begin(weight);
      const torch::Tensor scores = scores_of(model);
      const torch::Tensor loss = group.rank() == 1 ? loss_of(scores) : scores.sum();
      loss.backward();
      const std::string own = refusal([&] { parallel.step(0.1, loss); });
      if (group.rank() == 0) sentence = own;
    });
    return sentence;
  };
  const auto zeros = [](const torch::Tensor& scores) { return torch::zeros_like(scores); };
  const auto is_named = HasSubstr("on rank 1 the loss is a mean, but what is added up over the ranks are sums");
  EXPECT_THAT(refused([](auto& scores) { return scores.mean(); }), is_named);
  EXPECT_THAT(refused([&](auto& scores) { return torch::mse_loss(scores, zeros(scores)); }), is_named);
  EXPECT_THAT(refused([](auto& scores) {
                return F::cross_entropy(torch::cat({scores, -scores}, 1), torch::zeros({4}, torch::kLong));
              }),
              is_named);
  EXPECT_EQ(refused([&](auto& scores) { return torch::mse_loss(scores, zeros(scores), torch::Reduction::Sum); }), "");
  EXPECT_EQ(refused([](auto& scores) { return scores.mean() * 4; }), "") << "which is the sum";
  EXPECT_EQ(refused([](auto& scores) { return scores.mean(1).sum(); }), "") << "of each sample's mean";
  EXPECT_EQ(refused([](auto& scores) { return scores.mean(); }, 1), "") << "all that counts is one loss";
}

TEST(DataParallel, ALossOfNoParameterIsRefusedOnAllRanks) {
  for (const bool by_remuda : {true, false})
    run_ranks(2, [by_remuda](const Group& group) {
      auto model = make_linear();
      DataParallel parallel(group, *model);
      parallel.begin(4);
      torch::Tensor loss = model->forward(make_batch(4).inputs).sum();
      if (group.rank() == 1) loss = loss.detach();
      if (by_remuda)
        parallel.backward(loss);
      else if (group.rank() == 0)
        loss.backward();
      const std::string sentence = refusal([&] { by_remuda ? parallel.step(0.1) : parallel.step(0.1, loss); });
      EXPECT_THAT(sentence, HasSubstr("on rank 1 the loss requires no gradient, so that no backward() can follow: "));
    });
}

TEST(DataParallel, APartThatWasGivenUpOrWasAccumulatedNeedsNoBackward) {
  auto model = make_linear();
  DataParallel parallel(alone(), *model);
  parallel.begin(1);
  parallel.give_up();
  EXPECT_FALSE(parallel.step(0.1).applied);
  parallel.accumulate(1);
  (model->weight.sum() + model->bias.sum()).backward();
  parallel.begin(0);
  EXPECT_TRUE(parallel.step(0.1).applied);
}

TEST(DataParallel, StepsOfOtherRatesOrBatchesAreRefusedOnAllRanks) {
  run_ranks(3, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    parallel.begin(1);
    (model->weight.sum() + model->bias.sum()).backward();
    EXPECT_EQ(refusal([&] { parallel.step(group.rank() == 2 ? 0.2 : 0.1); }),
              "the learning rate of the step is 0.2 on rank 2 and 0.1 on rank 0; it must be the same");
  });
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    for (const int other : {0, 1}) {
      parallel.my_part(8 + other * group.rank());
      parallel.begin(1);
      (model->weight.sum() + model->bias.sum()).backward();
      if (other == 0)
        EXPECT_TRUE(parallel.step(0.1).applied);
      else
        EXPECT_EQ(refusal([&] { parallel.step(0.1); }),
                  "the global batch of the step is 9 on rank 1 and 8 on rank 0; it must be the same");
    }
  });
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

TEST(Options, ThatAreWrongAreRefused) {
  auto model = make_linear();
  const auto refused = [&](const std::function<void(Options&)>& change) {
    Options options;
    change(options);
    return refusal([&] { DataParallel(alone(), *model, options); });
  };
  EXPECT_EQ(refused([](Options&) {}), "");
  EXPECT_EQ(refused([](Options& options) { options.average = 1; }),
            "Options::average is 1; it must be at least 0 and below 1");
  EXPECT_THAT(refused([](Options& options) { options.clip_norm = -1; }), HasSubstr("Options::clip_norm is -1"));
  EXPECT_THAT(refused([](Options& options) { options.weight_decay = NAN; }), HasSubstr("Options::weight_decay is nan"));
  EXPECT_THAT(refused([](Options& options) { options.bucket_mib = 0; }), HasSubstr("above 0"));
  EXPECT_THAT(refused([](Options& options) { options.optimizer = Sgd{-1}; }), HasSubstr("Sgd::momentum is -1"));
  EXPECT_THAT(refused([](Options& options) { options.optimizer = AdamW{1}; }), HasSubstr("AdamW::beta1 is 1"));
  EXPECT_THAT(refused([](Options& options) { options.optimizer = AdamW{0.9, NAN}; }), HasSubstr("AdamW::beta2 is nan"));
  EXPECT_THAT(refused([](Options& options) { options.optimizer = AdamW{0.9, 0.99, INFINITY}; }),
              HasSubstr("AdamW::epsilon is inf"));
  EXPECT_EQ(refused([](Options& options) { options.shares = {1, 2}; }),
            "Options::shares is {1, 2}; it must have 1 value, one per rank, not negative, and not all 0");
  EXPECT_THAT(refused([](Options& options) { options.state_shares = {0}; }), HasSubstr("not all 0"));
  EXPECT_EQ(refused([](Options& options) { options.micro_batch = 0; }),
            "Options::micro_batch is 0; it must be 1 or more");
  EXPECT_EQ(refused([](Options& options) { options.gradients = Precision::automatic; }),
            "Options::gradients is automatic; it must be fp32 or bf16");
  EXPECT_EQ(refused([](Options& options) { options.gradients = Precision::bf16; }), "");
  model->to(torch::kDouble);
  EXPECT_EQ(refused([](Options& options) { options.gradients = Precision::bf16; }),
            "Options::gradients is bf16, but the parameters are float64; it is for those of float32");
}

/// With what each rank is refused whose options are changed on `rank` only, of three.
std::vector<std::string> refusals_where(int rank, const std::function<void(Options&)>& change) {
  std::vector<std::string> refusals(3);
  run_ranks(3, [&](const Group& group) {
    auto model = make_linear();
    Options options;
    if (group.rank() == rank) change(options);
    refusals[size_t(group.rank())] = refusal([&] { DataParallel(group, *model, options); });
    group.barrier();  // nobody waits for anybody
  });
  return refusals;
}

TEST(Options, ThatDifferBetweenRanksAreRefusedOnAll) {
  using ::testing::Each;
  EXPECT_THAT(refusals_where(2, [](Options& options) { options.clip_norm = 1; }),
              Each("Options::clip_norm is 1 on rank 2 and 0 on rank 0; it must be the same on all ranks"));
  EXPECT_THAT(
      refusals_where(0, [](Options& options) { options.optimizer = AdamW{}; }),
      Each("Options::optimizer is Sgd{0} on rank 1 and AdamW{0.9, 0.999, 1e-08} on rank 0; it must be the same on "
           "all ranks"));
  const std::map<std::string, std::function<void(Options&)>> changes{
      {"optimizer is Sgd{0.9} on rank 1", [](Options& options) { options.optimizer = Sgd{0.9}; }},
      {"weight_decay is 0.1 on rank 1", [](Options& options) { options.weight_decay = 0.1; }},
      {"without_decay is true for bias on rank 1 and true for no parameter on rank 0",
       [](Options& options) { options.without_decay = [](auto& name, auto&) { return name == "bias"; }; }},
      {"gradients is bf16 on rank 1 and fp32 on rank 0", [](Options& options) { options.gradients = Precision::bf16; }},
      {"micro_batch is 4 on rank 1", [](Options& options) { options.micro_batch = 4; }},
      {"average is 0.5 on rank 1", [](Options& options) { options.average = 0.5; }},
      {"shares is {1, 2, 0} on rank 1 and {} on rank 0", [](Options& options) { options.shares = {1, 2, 0}; }},
      {"state_shares is {3, 1, 1} on rank 1", [](Options& options) { options.state_shares = {3, 1, 1}; }},
      {"bucket_mib is 1e-05 on rank 1", [](Options& options) { options.bucket_mib = 1e-5; }},
      {"device_collectives is false on rank 1", [](Options& options) { options.device_collectives = false; }}};
  for (const auto& [what, change] : changes)
    EXPECT_THAT(refusals_where(1, change), Each(HasSubstr("Options::" + what)));
}

TEST(Options, ThatAreLongAreComparedWhole) {
  run_ranks(2, [](const Group& group) {
    auto model = torch::nn::Sequential();
    for (int i = 0; i < 200; ++i) model->push_back(torch::nn::Linear(1, 1));
    Options options;
    options.without_decay = [&](const std::string& name, auto&) { return group.rank() == 0 || name != "0.weight"; };
    EXPECT_THAT(refusal([&] { DataParallel(group, *model, options); }),
                HasSubstr("Options::without_decay is true for"));
  });
}

TEST(Options, ThatAreWrongOnOneRankAreToldToTheOthers) {
  const auto refusals = refusals_where(1, [](Options& options) { options.average = 7; });
  EXPECT_EQ(refusals[0], "rank 1: Options::average is 7; it must be at least 0 and below 1");
  EXPECT_EQ(refusals[1], "Options::average is 7; it must be at least 0 and below 1");
  EXPECT_EQ(refusals[2], refusals[0]);
}

TEST(Options, ATypeThatNoDeviceHasIsRefusedOnAllRanks) {
  if (refusal([&] {
        auto model = make_linear();
        Options options;
        options.precision = Precision::fp16;
        DataParallel(alone(), *model, options);
      }).empty())
    GTEST_SKIP() << "libtorch " TORCH_VERSION " has float16 on CPUs";
  EXPECT_THAT(refusals_where(2, [](Options& options) { options.precision = Precision::fp16; }),
              ::testing::Each(HasSubstr("no device of the group computes in fp16 with libtorch " TORCH_VERSION)));
}

TEST(DataParallel, ModuleThatOneRankCannotTrainIsRefusedOnAll) {
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    if (group.rank() == 0) model->to(torch::kHalf);
    const std::string sentence = refusal([&] { DataParallel(group, *model); });
    EXPECT_EQ(sentence, std::string(group.rank() == 1 ? "rank 0: " : "") +
                            "parameters are Half; float32 and float64 can be trained");
    group.barrier();
  });
}

}  // namespace
}  // namespace remuda::parallel
