// Gradients that are sent in bfloat16: what owners get, and what goes over the wire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/precision.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using Transport = comm::ConnectOptions::Transport;

/// A model whose gradients are known: of weight w, on a rank, they are what slope() says.
constexpr int64_t kSizes[] = {1000, 300, 7};

torch::Tensor slope(int rank, size_t weight) {
  return (torch::arange(kSizes[weight], torch::kFloat) * (1.1 + rank) + double(weight)).sin();
}

struct KnownModel {
  explicit KnownModel(torch::Device device) {
    for (const int64_t size : kSizes) weights.push_back(torch::ones({size}, torch::device(device).requires_grad(true)));
  }
  void backward(int rank, double factor = 1) const {
    torch::Tensor loss = torch::zeros({}, weights[0].options().requires_grad(false));
    for (size_t i = 0; i < weights.size(); ++i)
      loss = loss + (weights[i] * slope(rank, i).to(weights[i].device())).sum() * factor;
    loss.backward();
  }
  std::vector<torch::Tensor> weights;
};

std::unique_ptr<DataParallel> parallel_of(comm::Communicator& communicator, const DeviceOps& ops,
                                          const KnownModel& model, std::optional<torch::ScalarType> sent_as) {
  return DataParallel::create(communicator, ops, model.weights, [&] { model.backward(communicator.rank()); },
                              {.bucket_bytes = 1024, .gradients_sent_as = sent_as})
      .value();
}

/// The same roundings: of each rank's gradient, and of each addition in float32, in the order of the ranks.
TEST(RoundedGradients, AreAddedUpInFloat32WhateverTheDevices) {
  constexpr int kRanks = 3;
  run_ranks(kRanks, Transport::shared_memory, [](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    const auto ops = DeviceOps::open(rank == 1 ? torch::Device(torch::kXPU, 0) : torch::kCPU).value();
    const KnownModel model(ops.device());
    const auto parallel = parallel_of(communicator, ops, model, torch::kBFloat16);
    parallel->begin({.weight = 1});
    model.backward(rank);
    const auto step = parallel->reduce();
    ASSERT_TRUE(step) << step.error().message;
    const auto gradients = testing::whole_gradient(communicator, *parallel, model.weights, 1);
    double square_norm = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      torch::Tensor sum = slope(0, i).to(torch::kBFloat16).to(torch::kFloat);
      for (int other = 1; other < kRanks; ++other) sum = sum + slope(other, i).to(torch::kBFloat16).to(torch::kFloat);
      EXPECT_TRUE(gradients[i].equal(sum)) << "weight " << i << " on rank " << rank;
      square_norm += sum.to(torch::kDouble).square().sum().item<double>();
    }
    EXPECT_NEAR(step->norm, std::sqrt(square_norm) / kRanks, 1e-5);
  });
}

/// In a step, with the padding between them.
size_t values_sent_to(const DataParallel& parallel, int rank) {
  const FlatLayout& layout = parallel.flat().layout();
  size_t sum = 0;
  for (size_t bucket = 0; bucket < layout.buckets(); ++bucket) sum += layout.own(bucket, rank).size();
  return sum;
}

TEST(RoundedGradients, MayBeginBetweenTwoSteps) {
  run_ranks(2, Transport::tcp, [](comm::Communicator& communicator) {
    const KnownModel model(torch::kCPU);
    const auto parallel = parallel_of(communicator, testing::cpu_ops(), model, {});
    const auto sent_in_a_step = [&] {
      const uint64_t before = parallel->sent_bytes();
      parallel->begin({.weight = 1});
      model.backward(communicator.rank());
      EXPECT_TRUE(parallel->reduce());
      return parallel->sent_bytes() - before;
    };
    const uint64_t whole = sent_in_a_step();
    ASSERT_TRUE(parallel->send_gradients_as(torch::kBFloat16));
    EXPECT_EQ(whole - sent_in_a_step(), 2 * values_sent_to(*parallel, 1 - communicator.rank()));
    const auto gradients = testing::whole_gradient(communicator, *parallel, model.weights, 1);
    for (size_t i = 0; i < gradients.size(); ++i)
      EXPECT_TRUE(gradients[i].equal(slope(0, i).to(torch::kBFloat16).to(torch::kFloat) +
                                     slope(1, i).to(torch::kBFloat16).to(torch::kFloat)));
  });
}

TEST(RoundedGradients, AreHalfOfTheBytesOnTheWire) {
  run_ranks(2, Transport::tcp, [](comm::Communicator& communicator) {
    uint64_t sent[2];
    size_t of_the_other = 0;
    for (const bool rounded : {false, true}) {
      const KnownModel model(torch::kCPU);
      const auto parallel = parallel_of(communicator, testing::cpu_ops(), model,
                                        rounded ? std::optional(torch::kBFloat16) : std::nullopt);
      const uint64_t before = communicator.sent_bytes();
      parallel->begin({.weight = 1});
      model.backward(communicator.rank());
      ASSERT_TRUE(parallel->reduce());
      sent[rounded] = communicator.sent_bytes() - before;
      of_the_other = values_sent_to(*parallel, 1 - communicator.rank());
    }
    ASSERT_GT(of_the_other, 0u);
    EXPECT_EQ(sent[0] - sent[1], of_the_other * (sizeof(float) - sizeof(comm::BFloat16)));
  });
}

TEST(RoundedGradients, ThatAreNotFiniteOnOneRankSkipTheStepOnAll) {
  run_ranks(2, Transport::shared_memory, [](comm::Communicator& communicator) {
    const KnownModel model(torch::kCPU);
    const auto parallel = parallel_of(communicator, testing::cpu_ops(), model, torch::kBFloat16);
    for (const bool overflows : {true, false}) {
      parallel->begin({.weight = 1});
      model.backward(communicator.rank(), overflows && communicator.rank() == 1 ? INFINITY : 1);
      const auto step = parallel->reduce();
      ASSERT_TRUE(step);
      EXPECT_EQ(step->stands, !overflows);
    }
  });
}

TEST(RoundedGradients, AreForModelsOfFloat32) {
  EXPECT_EQ(gradient_type(job::Precision::fp32, torch::kDouble).value(), torch::kDouble);
  EXPECT_EQ(gradient_type(job::Precision::bf16, torch::kFloat).value(), torch::kBFloat16);
  const auto refused = gradient_type(job::Precision::bf16, torch::kDouble);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("train.gradients is for models of float32"));
}

}  // namespace
}  // namespace remuda::train
