// Batch norm over all ranks: however a batch is divided, over CPUs and stand-in accelerators together, gradients,
// updates and running statistics are those of one device with ordinary batch norm.
#include <deque>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "balance/shares.h"
#include "base/clock.h"
#include "comm/testing/run_ranks.h"
#include "train/local_step.h"
#include "train/model/batch_norm.h"
#include "train/step_start.h"
#include "train/testing/capped_memory.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using testing::make_seeded;
using testing::ModelCase;
constexpr int kWhole = 24;
constexpr double kNormLimit = 0.05, kStepSize = 0.1;

ModelCase resnet_case(job::Recompute recompute = job::Recompute::none) {
  ModelCase resnet{.name = "resnet",
                   .spec = {.name = "resnet", .width = 8, .depth = 1, .norm = job::Norm::batch},
                   .input = {1, 12, 12, 5, 0}};
  resnet.recompute = recompute;
  return resnet;
}

/// How a batch is divided: samples of each rank, which computes them in pieces.
struct Cut {
  std::vector<int> split;
  size_t pieces = 1;
  int64_t micro_batch = 0;
  bool accelerators = true;  ///< every other rank
  job::Recompute recompute = job::Recompute::none;
  size_t room = SIZE_MAX;  ///< of the last rank, in a first attempt that is repeated

  int ranks() const { return int(split.size()); }
  torch::Device device(int rank) const {
    return accelerators && rank % 2 == 1 ? torch::Device(torch::kXPU, c10::DeviceIndex(rank / 2)) : torch::kCPU;
  }
  Batch part(const Batch& batch, int rank) const {
    return testing::narrow(batch, std::accumulate(split.begin(), split.begin() + rank, 0), split[size_t(rank)]);
  }
  LocalStep::Options options(NormExchange* norms) const {
    return {.pieces = pieces, .micro_batch = micro_batch, .norms = norms};
  }
};

struct Learned {
  std::vector<torch::Tensor> gradient, parameters, buffers;
};

std::vector<torch::Tensor> on_cpu(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach().to(torch::kCPU).clone());
  return all;
}

/// By libtorch alone: the batches one after the other, then one step.
Learned learn_alone(const std::vector<Batch>& pieces) {
  const auto model = make_seeded(resnet_case(), torch::kFloat);
  double weight = 0;
  for (const Batch& piece : pieces) {
    testing::case_loss(resnet_case(), *model, piece).sum.backward();
    weight += double(piece.input.size(0));
  }
  const auto parameters = model->parameters();
  for (const auto& parameter : parameters) parameter.mutable_grad().div_(weight);
  Learned learned;
  torch::nn::utils::clip_grad_norm_(parameters, kNormLimit);
  learned.gradient = testing::gradients(*model);
  torch::optim::SGD(parameters, kStepSize).step();
  learned.parameters = on_cpu(parameters);
  learned.buffers = on_cpu(model->buffers());
  return learned;
}

/// The first pieces of all ranks together, the second ones, ...
std::vector<Batch> pieces_of(const Batch& batch, const Cut& cut) {
  std::vector<std::vector<torch::Tensor>> inputs, targets;
  for (int rank = 0; rank < cut.ranks(); ++rank) {
    const Batch part = cut.part(batch, rank);
    const int64_t samples = part.input.size(0), unit = cut.micro_batch;
    const int64_t count = unit > 0 ? (samples + unit - 1) / unit : std::min<int64_t>(int64_t(cut.pieces), samples);
    inputs.resize(std::max(inputs.size(), size_t(count)));
    targets.resize(inputs.size());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t begin = unit > 0 ? i * unit : i * samples / count,
                    end = unit > 0 ? std::min(begin + unit, samples) : (i + 1) * samples / count;
      inputs[size_t(i)].push_back(part.input.narrow(0, begin, end - begin));
      targets[size_t(i)].push_back(part.target.narrow(0, begin, end - begin));
    }
  }
  std::vector<Batch> pieces;
  for (size_t i = 0; i < inputs.size(); ++i) pieces.push_back({torch::cat(inputs[i]), torch::cat(targets[i])});
  return pieces;
}

class SynchronizedNormTest : public ::testing::Test {
 protected:
  ~SynchronizedNormTest() override {
    for (int device = 0; device < testing::kStandinDevices; ++device) testing::configure_standin(device, {});
  }

  /// One step of all ranks, checked to end alike on all.
  Learned learn_divided(const Batch& batch, const Cut& cut) {
    std::vector<std::unique_ptr<Model>> models;
    for (int rank = 0; rank < cut.ranks(); ++rank) {
      models.push_back(make_seeded(resnet_case(cut.recompute), torch::kFloat));
      models.back()->to(cut.device(rank));
    }
    std::vector<Learned> all(size_t(cut.ranks()));
    std::deque<testing::Budget>& budgets = budgets_.emplace_back(size_t(cut.ranks()));
    run_ranks(cut.ranks(), comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      Model& model = *models[size_t(rank)];
      const DeviceOps ops = DeviceOps::open(cut.device(rank)).value();
      const auto norms = NormExchange::create(communicator).value();
      ASSERT_TRUE(model.synchronize_norms(*norms));
      const StepStart start(model, ops.device());
      Pace pace(1, steady_clock());
      LocalStep local(model, ops, pace, cut.options(norms.get()));
      const auto parallel = DataParallel::create(communicator, ops, model.parameters(),
                                                 [&] { local.run_alone(testing::narrow(batch, 0, 1)); },
                                                 {.bucket_bytes = 4096, .clip_norm = kNormLimit, .norms = norms.get()})
                                .value();
      start.restore();  // one sample is no statistic
      const Batch mine = cut.part(batch, rank);
      if (cut.room < SIZE_MAX) {
        testing::Budget& budget = budgets[size_t(rank)];
        if (rank == cut.ranks() - 1) budget.cap = cut.room;
        {
          const testing::OnDevice limited(budget);
          local.run(mine, {}, *parallel);
        }
        const auto failed = parallel->reduce();
        ASSERT_TRUE(failed) << failed.error().message;
        EXPECT_EQ(failed->totals.first_with(kOutOfMemory), cut.ranks() - 1);
        start.restore();
      }
      local.run(mine, {}, *parallel);
      const auto step = parallel->reduce();
      ASSERT_TRUE(step) << step.error().message;
      ASSERT_TRUE(step->stands);
      Learned& learned = all[size_t(rank)];
      learned.gradient = testing::whole_gradient(communicator, *parallel, model.parameters(), step->gradient_factor);
      ASSERT_TRUE(parallel->update(*step, {{kStepSize, 0}}));
      learned.parameters = on_cpu(model.parameters());
      learned.buffers = on_cpu(model.buffers());
    });
    for (const Learned& other : all) EXPECT_EQ(testing::relative_error(other.buffers, all[0].buffers), 0);
    return all[0];
  }

  void expect_exact(const Cut& cut) {
    SCOPED_TRACE(::testing::PrintToString(cut.split) + " in " + std::to_string(cut.pieces));
    const Batch batch = testing::make_batch(resnet_case(), kWhole, 5, torch::kFloat);
    const Learned expected = learn_alone(pieces_of(batch, cut)), learned = learn_divided(batch, cut);
    ASSERT_FALSE(learned.buffers.empty());
    EXPECT_LT(testing::relative_error(learned.gradient, expected.gradient), 1e-6);
    EXPECT_LT(testing::relative_error(learned.parameters, expected.parameters), 1e-6);
    EXPECT_LT(testing::relative_error(learned.buffers, expected.buffers), 1e-6);
    for (size_t i = 0; i < expected.buffers.size(); ++i)
      EXPECT_TRUE(expected.buffers[i].dim() > 0 || learned.buffers[i].equal(expected.buffers[i])) << "batches";
  }

  std::deque<std::deque<testing::Budget>> budgets_;  ///< they outlive what was allocated on them
};

// 1e-6 relative, float32: see exactness_test.cc.
TEST_F(SynchronizedNormTest, AnyDivisionIsExact) {
  std::mt19937 random(29);
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (const auto recompute : {job::Recompute::none, job::Recompute::blocks}) {
      std::vector<double> weights(size_t(ranks), 0.0);
      for (double& weight : weights) weight = double(random() % 4);
      expect_exact({.split = balance::apportion(kWhole, weights), .recompute = recompute});
    }
  expect_exact({.split = {0, 24}});
  expect_exact({.split = {1, 0, 23, 0}, .recompute = job::Recompute::blocks});
}

TEST_F(SynchronizedNormTest, PiecesOfAllRanksAreNormalisedTogether) {
  for (const auto recompute : {job::Recompute::none, job::Recompute::blocks}) {
    expect_exact({.split = {14, 10}, .pieces = 3, .recompute = recompute});
    expect_exact({.split = {2, 22}, .pieces = 4, .recompute = recompute});
    expect_exact({.split = {0, 17, 7}, .pieces = 2, .recompute = recompute});
    expect_exact({.split = {16, 8}, .micro_batch = 4, .recompute = recompute});
    expect_exact({.split = {0, 6, 18}, .micro_batch = 4, .recompute = recompute});
  }
}

/// What the last rank takes of its device in a step.
size_t starved_peak(const Cut& cut, const Batch& batch, std::deque<testing::Budget>& budgets) {
  const auto model = make_seeded(resnet_case(cut.recompute), torch::kFloat);
  testing::case_loss(resnet_case(), *model, testing::narrow(batch, 0, 1)).sum.backward();
  testing::Budget& budget = budgets.emplace_back();
  const testing::OnDevice counted(budget);
  testing::case_loss(resnet_case(), *model, cut.part(batch, cut.ranks() - 1)).sum.backward();
  return budget.peak;
}

TEST_F(SynchronizedNormTest, ARankThatRunsOutOfMemoryAnywhereKeepsNobodyWaiting) {
  const testing::CappedMemory capped;
  const Batch batch = testing::make_batch(resnet_case(), kWhole, 5, torch::kFloat);
  std::deque<testing::Budget>& budgets = budgets_.emplace_back();
  for (const auto recompute : {job::Recompute::none, job::Recompute::blocks})
    for (const size_t pieces : {1, 2}) {
      Cut cut{.split = {9, 6, 9}, .pieces = pieces, .accelerators = false, .recompute = recompute};
      const size_t peak = starved_peak(cut, batch, budgets) / pieces;
      for (const double part : {0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9}) {
        SCOPED_TRACE(part);
        cut.room = size_t(part * double(peak));
        expect_exact(cut);
      }
    }
}

/// What is not synchronized is not exact, so the tests above can fail.
TEST_F(SynchronizedNormTest, LocalStatisticsDependOnTheSplit) {
  const Batch batch = testing::make_batch(resnet_case(), kWhole, 5, torch::kFloat);
  const Learned whole = learn_alone({batch});
  const Learned halves = learn_alone({testing::narrow(batch, 0, 12), testing::narrow(batch, 12, 12)});
  EXPECT_GT(testing::relative_error(halves.gradient, whole.gradient), 1e-2);
}

TEST_F(SynchronizedNormTest, AForwardPassWithoutGradientsIsOfThisRankAlone) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const auto norms = NormExchange::create(communicator).value();
    BatchNorm norm(3), ordinary(3);
    norm->synchronize(*norms);
    if (communicator.rank() == 1) return;
    const torch::NoGradGuard no_grad;
    const auto input = torch::arange(48, torch::kFloat).view({4, 3, 2, 2});
    EXPECT_TRUE(norm->forward(input).allclose(ordinary->forward(input)));
    EXPECT_TRUE(norm->running_var.allclose(ordinary->running_var));
    norm->eval();
    ordinary->eval();
    EXPECT_TRUE(norm->forward(input).equal(ordinary->forward(input)));
  });
}

}  // namespace
}  // namespace remuda::train
