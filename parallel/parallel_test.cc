#include "parallel/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>
#include <thread>

#include "base/testing/scratch_folder.h"
#include "parallel/testing/ranks.h"

namespace remuda::parallel {
namespace {

using ::testing::HasSubstr;
using namespace testing;

/// Parameters after `steps` steps of plain libtorch over whole batches.
torch::nn::Linear trained_alone(const Batch& batch, int steps) {
  auto model = make_linear();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  const int64_t size = batch.inputs.size(0);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    (loss_sum(model, batch, {0, size}) / double(size)).backward();
    optimizer.step();
  }
  return model;
}

bool are_close(torch::nn::Linear& a, torch::nn::Linear& b) {
  return torch::allclose(a->weight, b->weight, 1e-6) && torch::allclose(a->bias, b->bias, 1e-6);
}

TEST(DataParallel, ExampleOfTheHeaderLearns) {
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    const auto [inputs, targets] = make_batch(512);
    const double before = torch::mse_loss(model->forward(inputs), targets).item<double>();
    Options options;
    options.optimizer = AdamW{};
    DataParallel parallel(group, *model, options);
    for (int64_t first = 0; first + 64 <= inputs.size(0); first += 64) {
      const Part part = parallel.my_part(64);
      torch::Tensor loss = torch::zeros({});
      parallel.begin(double(part.size));
      if (part.size > 0) {
        const auto scores = model->forward(inputs.narrow(0, first + part.begin, part.size));
        loss = torch::mse_loss(scores, targets.narrow(0, first + part.begin, part.size), torch::Reduction::Sum);
        loss.backward();
      }
      const Step step = parallel.step(0.01, loss);
      if (!step.applied) std::cerr << step.skipped << "\n";
    }
    EXPECT_LT(torch::mse_loss(model->forward(inputs), targets).item<double>(), before);
    parallel.check();
  });
}

TEST(DataParallel, AnySplitGivesWhatOneDeviceWouldLearn) {
  const Batch batch = make_batch(10);
  auto expected = trained_alone(batch, 3);
  for (const int64_t first : {0, 3, 10})
    run_ranks(2, [&](const Group& group) {
      auto model = make_linear();
      DataParallel parallel(group, *model);
      const Part part = group.rank() == 0 ? Part{0, first} : Part{first, 10 - first};
      Step step;
      for (int i = 0; i < 3; ++i) step = train_on(parallel, model, batch, part);
      EXPECT_TRUE(step.applied);
      EXPECT_EQ(step.weight, 10);
      EXPECT_GT(step.norm, 0);
      EXPECT_TRUE(are_close(model, expected)) << first;
    });
}

TEST(DataParallel, AccumulatedPassesAreOneStep) {
  const Batch batch = make_batch(10);
  auto expected = trained_alone(batch, 2);
  run_ranks(2, [&](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    for (int i = 0; i < 2; ++i) {
      const int64_t begin = group.rank() * 5;
      parallel.accumulate(2);
      loss_sum(model, batch, {begin, 2}).backward();
      parallel.accumulate(1);
      loss_sum(model, batch, {begin + 2, 1}).backward();
      EXPECT_EQ(train_on(parallel, model, batch, {begin + 3, 2}).weight, 10);
    }
    EXPECT_TRUE(are_close(model, expected));
  });
}

TEST(DataParallel, LossIsTheMeanOverAllRanks) {
  const Batch batch = make_batch(10);
  auto model = make_linear();
  const double mean = loss_sum(model, batch, {0, 10}).item<double>() / 10;
  run_ranks(2, [&](const Group& group) {
    auto own = make_linear();
    DataParallel parallel(group, *own);
    const Part part = group.rank() == 0 ? Part{0, 3} : Part{3, 7};
    EXPECT_NEAR(train_on(parallel, own, batch, part).loss, mean, 1e-5);
  });
}

TEST(DataParallel, AllRanksStartFromRankZerosValues) {
  run_ranks(2, [](const Group& group) {
    auto model = make_linear(group.rank());
    const DataParallel parallel(group, *model);
    EXPECT_TRUE(model->weight.eq(0).all().item<bool>());
  });
}

TEST(DataParallel, PartsAreTheBatchInTheGivenProportions) {
  run_ranks(3, [](const Group& group) {
    auto model = make_linear();
    Options options;
    options.shares = {1, 0, 3};
    DataParallel parallel(group, *model, options);
    const std::vector<int64_t> begins{0, 2, 2}, sizes{2, 0, 6};
    const auto rank = size_t(group.rank());
    for (int i = 0; i < 2; ++i) {
      const Part part = parallel.my_part(8);
      EXPECT_EQ(part.begin, begins[rank]);
      EXPECT_EQ(part.size, sizes[rank]);
      train_on(parallel, model, make_batch(8), part);
    }
    EXPECT_EQ(parallel.my_part(4).size, sizes[rank] / 2);  // the last batch of an epoch, say
  });
}

TEST(DataParallel, PartsAreWholeMicroBatchesExceptForTheLast) {
  run_ranks(3, [](const Group& group) {
    auto model = make_linear();
    Options options;
    options.shares = {1, 0, 3};
    options.micro_batch = 4;
    DataParallel parallel(group, *model, options);
    const auto rank = size_t(group.rank());
    const auto expect_part = [&](int64_t batch, std::vector<Part> parts) {
      const Part part = parallel.my_part(batch);
      EXPECT_EQ(part.begin, parts[rank].begin) << batch;
      EXPECT_EQ(part.size, parts[rank].size) << batch;
      train_on(parallel, model, make_batch(batch), part);
    };
    expect_part(32, {{0, 8}, {8, 0}, {8, 24}});
    expect_part(30, {{0, 8}, {8, 0}, {8, 22}});
    expect_part(14, {{0, 4}, {4, 0}, {4, 10}});
    expect_part(2, {{0, 0}, {0, 0}, {0, 2}});
  });
}

TEST(DataParallel, SlowerRankGetsLess) {
  using namespace std::chrono_literals;
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    const Batch batch = make_batch(64);
    Part part = parallel.my_part(64);
    EXPECT_EQ(part.size, 32);
    for (int i = 0; i < 12; ++i) {
      std::this_thread::sleep_for(part.size * (group.rank() == 0 ? 900us : 100us));
      train_on(parallel, model, batch, part);
      part = parallel.my_part(64);
    }
    const double slow = group.sum({group.rank() == 0 ? double(part.size) : 0})[0];
    EXPECT_LT(slow, 32);
    EXPECT_EQ(group.sum({double(part.size)})[0], 64);
  });
}

TEST(DataParallel, RankThatGivesUpGetsLessAndNobodySteps) {
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    const Batch batch = make_batch(64);
    const Part part = parallel.my_part(64);
    parallel.begin(double(part.size));
    const auto loss = loss_sum(model, batch, part);
    loss.backward();
    if (group.rank() == 1) parallel.give_up();
    const Step step = parallel.step(0.1, loss);
    EXPECT_FALSE(step.applied);
    EXPECT_EQ(step.skipped, "rank 1 gave up its part of the step");
    EXPECT_TRUE(model->weight.eq(0.5).all().item<bool>());
    EXPECT_EQ(parallel.my_part(64).size, group.rank() == 1 ? 24 : 40);
  });
}

TEST(DataParallel, StepThatIsNotFiniteOrHasNoSamplesIsSkipped) {
  auto model = make_linear();
  DataParallel parallel(alone(), *model);
  parallel.begin(1);
  (model->weight.sum() * INFINITY).backward();
  EXPECT_EQ(parallel.step(0.1).skipped, "the loss or a gradient is infinite or not a number");
  parallel.begin(0);
  EXPECT_EQ(parallel.step(0.1).skipped, "no rank had a sample: all weights are 0");
  EXPECT_TRUE(model->weight.eq(0.5).all().item<bool>());
}

TEST(DataParallel, DecayIsForThoseThatAreToDecay) {
  auto model = make_linear();
  Options options;
  options.weight_decay = 0.5;
  options.without_decay = [](const std::string& name, const torch::Tensor&) { return name == "bias"; };
  DataParallel parallel(alone(), *model, options);
  parallel.begin(1);
  (model->forward(torch::zeros({1, 3})).sum() * 0).backward();
  ASSERT_TRUE(parallel.step(0.1).applied);
  EXPECT_TRUE(torch::allclose(model->weight, torch::full({1, 3}, 0.475)));
  EXPECT_TRUE(torch::allclose(model->bias, torch::full({1}, 0.5)));
}

TEST(DataParallel, ClippedStepIsNoLongerThanItMayBe) {
  auto model = make_linear(0);
  Options options;
  options.clip_norm = 1e-3;
  DataParallel parallel(alone(), *model, options);
  const Step step = train_on(parallel, model, make_batch(4), {0, 4}, 1);
  EXPECT_GT(step.norm, 1e-3);
  EXPECT_NEAR(torch::cat({model->weight.view(-1), model->bias}).norm().item<double>(), 1e-3, 1e-6);
}

TEST(DataParallel, AverageIsSwappedInAndOut) {
  run_ranks(2, [](const Group& group) {
    auto model = make_linear();
    Options options;
    options.average = 0.5;
    DataParallel parallel(group, *model, options);
    const Batch batch = make_batch(4);
    train_on(parallel, model, batch, {0, 4});
    const auto first = model->weight.detach().clone();
    train_on(parallel, model, batch, {0, 4});
    const auto second = model->weight.detach().clone();
    parallel.swap_average();
    EXPECT_TRUE(torch::allclose(model->weight, (first + second) / 2));
    parallel.swap_average();
    EXPECT_TRUE(model->weight.equal(second));
  });
}

TEST(DataParallel, BuffersBecomeTheirMeanByWeight) {
  run_ranks(2, [](const Group& group) {
    torch::nn::BatchNorm1d norm(1);
    DataParallel parallel(group, *norm);
    parallel.begin(group.rank() == 0 ? 3 : 1);
    (norm->weight.sum() + norm->bias.sum()).backward();
    parallel.step(0.1);
    norm->running_mean.fill_(group.rank() == 0 ? 0 : 4);
    parallel.average_buffers();
    EXPECT_EQ(norm->running_mean.item<float>(), 1);
  });
}

TEST(DataParallel, ParametersOutliveTheGroup) {
  auto model = make_linear();
  {
    const Group group = alone();
    DataParallel parallel(group, *model);
    train_on(parallel, model, make_batch(4), {0, 4});
  }
  EXPECT_FALSE(model->weight.grad().defined());
  EXPECT_TRUE(torch::isfinite(model->weight).all().item<bool>());
  const auto memory = model->weight.storage().nbytes();
  EXPECT_EQ(memory, size_t(model->weight.nbytes())) << "still a part of the group's memory";
}

/// Two blocks that share a layer: it becomes ready twice in a step, as the trial shows.
TEST(DataParallel, RecomputedBlocksLearnWhatKeptOnesDo) {
  const auto trained = [](bool recompute) {
    torch::Tensor weights;
    run_ranks(2, [&](const Group& group) {
      torch::nn::Sequential model(torch::nn::Linear(6, 6), torch::nn::Tanh(), torch::nn::Linear(6, 6));
      {
        const torch::NoGradGuard no_grad;
        for (auto& one : model->parameters()) one.copy_(torch::arange(one.numel()).sin().mul(0.5).view_as(one));
      }
      const auto inputs = torch::linspace(-1, 1, 48).view({8, 6});
      const auto loss_of = [&](const torch::Tensor& input) {
        const auto block = [model](const torch::Tensor& in) mutable { return model->forward(in); };
        const auto x = recompute ? recomputed(block, recomputed(block, input)) : model->forward(model->forward(input));
        return x.square().sum();
      };
      Options options;
      options.shares = {3, 1};
      options.trial = [&] { loss_of(inputs).backward(); };
      DataParallel parallel(group, *model, options);
      for (int i = 0; i < 3; ++i) {
        const Part part = parallel.my_part(8);
        parallel.begin(double(part.size));
        const auto loss = loss_of(inputs.narrow(0, part.begin, part.size));
        loss.backward();
        ASSERT_TRUE(parallel.step(0.1, loss).applied);
      }
      if (group.rank() == 0)
        weights = torch::cat(
            {model->parameters()[0].detach().clone().view(-1), model->parameters()[2].detach().clone().view(-1)});
    });
    return weights;
  };
  // Two blocks add their gradients of a weight up one after the other, the kept ones all at once.
  EXPECT_LT((trained(true) - trained(false)).abs().max().item<double>(), 1e-6);
}

/// Embedding-like at the beginning, in two blocks, and at the end.
struct TiedNet : torch::nn::Module {
  TiedNet() : shared(torch::nn::LinearOptions(6, 6)), norm(6), block(shared, norm, torch::nn::Tanh()) {
    register_module("block", block);
    const torch::NoGradGuard no_grad;
    for (auto& one : parameters()) one.copy_(torch::arange(one.numel()).sin().mul(0.5).view_as(one));
  }
  torch::Tensor forward(const torch::Tensor& input, bool recompute) {
    auto x = shared(input);
    for (int i = 0; i < 2; ++i) x = recompute ? recomputed(block, x) : block->forward(x);
    return shared(x);
  }
  torch::nn::Linear shared;
  torch::nn::BatchNorm1d norm;
  torch::nn::Sequential block;
};

/// Without a trial. Two backward passes for each step, so that there are gradients to add to.
TEST(DataParallel, RecomputedModulesMayShareParametersWithTheRest) {
  const auto trained = [](bool recompute) {
    std::vector<torch::Tensor> all;
    run_ranks(2, [&](const Group& group) {
      TiedNet net;
      const auto inputs = torch::linspace(-1, 1, 48).view({8, 6});
      DataParallel parallel(group, net);
      for (int i = 0; i < 3; ++i) {
        const auto loss_of = [&](int64_t begin) {
          return net.forward(inputs.narrow(0, begin, 2), recompute).square().sum();
        };
        parallel.accumulate(2);
        loss_of(4 * group.rank()).backward();
        parallel.begin(2);
        const auto loss = loss_of(4 * group.rank() + 2);
        loss.backward();
        ASSERT_TRUE(parallel.step(0.1, loss).applied);
      }
      if (group.rank() != 0) return;
      for (const auto& one : net.parameters()) all.push_back(one.detach().clone());
      for (const auto& one : net.buffers()) all.push_back(one.clone());
    });
    return all;
  };
  const auto kept = trained(false), again = trained(true);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(again.at(i).equal(kept[i])) << i;
}

TEST(Group, AddsUpOverAllRanks) {
  run_ranks(3, [](const Group& group) {
    EXPECT_THAT(group.sum({double(group.rank()), 1}), ::testing::ElementsAre(3, 3));
    group.barrier();
  });
}

TEST(Group, TermsThatDifferAreNamed) {
  const int port = free_port().value();
  std::vector<std::string> refusals(2);
  std::vector<std::thread> threads;
  for (int rank : {0, 1})
    threads.emplace_back([&, rank] {
      Place place;
      place.rank = rank;
      place.size = 2;
      place.master_port = port;
      place.secret = "of this test";
      refusals[size_t(rank)] = refusal([&] { Group::connect(place, {{"seed", std::to_string(rank)}}); });
    });
  for (auto& thread : threads) thread.join();
  for (const std::string& sentence : refusals) EXPECT_THAT(sentence, HasSubstr("seed is "));
}

TEST(Weights, GoToAFileAndBack) {
  const ScratchFolder folder;
  const std::string path = folder.path("model.safetensors");
  auto model = make_linear(0.25), other = make_linear(1);
  save_weights(*model, path);
  load_weights(*other, path);
  EXPECT_TRUE(other->weight.equal(model->weight));
  torch::nn::Linear wider(4, 1);
  EXPECT_THAT(refusal([&] { load_weights(*wider, path); }), HasSubstr("weight has shape"));
  EXPECT_THAT(refusal([&] { load_weights(*wider, folder.path("none")); }), HasSubstr("none"));
}

}  // namespace
}  // namespace remuda::parallel
