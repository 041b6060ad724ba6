// Whole runs in micro-batches: each device normalises equally many samples at a time, so that what is trained does not
// depend on the split, batch norm included.
#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <torch/script.h>

#include "comm/testing/run_ranks.h"
#include "train/testing/capped_memory.h"
#include "train/testing/data_files.h"
#include "train/trainer.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;

constexpr const char* kNormalisingForward = R"(
def forward(self, x):
  hidden = torch.matmul(x.flatten(1), self.up.t())
  hidden = torch.batch_norm(hidden, self.scale, self.shift, self.running_mean, self.running_var, self.training, 0.1, 1e-5, False)
  return torch.matmul(torch.tanh(hidden), self.down.t())
)";

class MicroBatches : public ::testing::Test {
 protected:
  static constexpr int kSide = 12, kBatch = 96, kMicroBatch = 16, kImages = 2 * kBatch + 40;

  MicroBatches() {
    job_.data = testing::write_samples(folder_, {.input = {1, kSide, kSide, 5, 0}}, kImages);
    job_.data.test = job_.data.train;
    job_.train = {.epochs = 2, .global_batch = kBatch, .micro_batch = kMicroBatch, .learning_rate = 0.01};
    job_.balance.unit = job::Unit::microbatches;
    write_model(kNormalisingForward);
  }

  void write_model(const std::string& forward) {
    torch::jit::Module module("normalising");
    const auto weight = [](int64_t out, int64_t in) {
      return torch::arange(out * in, torch::kFloat).sin().mul(0.1).view({out, in}).requires_grad_();
    };
    module.register_parameter("up", weight(32, kSide * kSide), false);
    module.register_parameter("down", weight(5, 32), false);
    module.register_parameter("scale", torch::ones({32}, torch::requires_grad()), false);
    module.register_parameter("shift", torch::zeros({32}, torch::requires_grad()), false);
    module.register_buffer("running_mean", torch::zeros({32}));
    module.register_buffer("running_var", torch::ones({32}));
    module.register_attribute("training", c10::BoolType::get(), true);
    module.register_buffer("passes", torch::zeros({1}));
    module.define(forward);
    job_.model = {.path = folder_.path("model.pt")};
    module.save(job_.model.path);
  }

  struct Finished {
    RunReport report;  ///< of rank 0
    std::vector<torch::Tensor> parameters, buffers;
    size_t kept = 0, peak = 0;  ///< bytes of the last rank: before the first step, and at most
    std::string error;
  };

  /// The last rank has `room` bytes besides what it has before the first step.
  Finished run(std::vector<double> shares, size_t room = SIZE_MAX) {
    const int ranks = int(shares.size());
    job_.devices.clear();
    for (int rank = 0; rank < ranks; ++rank) job_.devices.push_back({"cpu:" + std::to_string(rank)});
    job_.balance.policy = balance::BalancePolicy::fixed;
    job_.balance.shares = std::move(shares);
    Finished finished;
    std::deque<testing::Budget>& budgets = budgets_.emplace_back(size_t(ranks));
    const std::atomic<bool> leave = false;
    const Events events(-1);
    run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      testing::Budget& budget = budgets[size_t(rank)];
      const testing::OnDevice device(budget);
      const auto trainer = Trainer::create(job_, communicator, events, leave).value();
      const size_t kept = budget.used;
      budget.peak = kept;
      if (rank == ranks - 1 && room < SIZE_MAX) budget.cap = kept + room;
      const auto report = trainer->run();
      if (rank == ranks - 1) finished.kept = kept, finished.peak = budget.peak;
      if (rank == 0 && !report) finished.error = report.error().message;
      if (rank != 0 || !report) return;
      finished.report = *report;
      for (const auto& parameter : trainer->parameters().parameters())
        finished.parameters.push_back(parameter.detach().clone());
      finished.buffers = copies(trainer->model().buffers());
    });
    return finished;
  }

  static std::vector<torch::Tensor> copies(const std::vector<torch::Tensor>& tensors) {
    std::vector<torch::Tensor> all;
    for (const torch::Tensor& one : tensors) all.push_back(one.clone());
    return all;
  }

  const testing::CappedMemory counted_;
  const ScratchFolder folder_;
  job::TrainJob job_;
  std::deque<std::deque<testing::Budget>> budgets_;  ///< they outlive what was allocated on them
};

// 1e-6: sums of float32 in another order. The last step of an epoch has two micro-batches, and one of 8 samples.
TEST_F(MicroBatches, TrainTheSameWeightsWhateverTheSplit) {
  const Finished one = run({1});
  ASSERT_EQ(one.error, "");
  EXPECT_EQ(one.report.steps, 2 * 3);
  for (const std::vector<double>& shares : {std::vector<double>{1, 1}, {5, 1}, {1, 3, 2}, {1, 20}, {1, 1, 1, 2, 1}}) {
    SCOPED_TRACE(::testing::PrintToString(shares));
    const Finished many = run(shares);
    ASSERT_EQ(many.error, "");
    EXPECT_LT(testing::relative_error(many.parameters, one.parameters), 1e-6);
    double samples = 0, pieces = 0;
    for (const DeviceReport& device : many.report.devices) {
      samples += device.samples;
      pieces += device.share * kBatch / kMicroBatch;
      EXPECT_EQ(device.pieces, std::max(1.0, device.share * kBatch / kMicroBatch));
    }
    EXPECT_EQ(samples, 2 * kImages);
    EXPECT_EQ(pieces, kBatch / kMicroBatch);
    EXPECT_EQ(many.report.batch_norm, "local");
    EXPECT_EQ(to_json(many.report)["balance"]["micro_batch"], kMicroBatch);
  }
  EXPECT_EQ(run({1, 20}).report.devices[0].samples, 0) << "a device may have none";
}

/// One device in float64, by libtorch's own functions alone: mean and variance after all micro-batches, in order.
std::vector<torch::Tensor> statistics_of_one(const job::TrainJob& job, int images) {
  auto module = torch::jit::load(job.model.path);
  module.to(torch::kDouble);
  const auto parameter = [&](const char* name) { return module.attr(name).toTensor(); };
  torch::Tensor mean = torch::zeros({32}, torch::kDouble), variance = torch::ones({32}, torch::kDouble);
  const Samples samples = Samples::open(job.data, data::Split::train, job.model).value();
  std::vector<torch::Tensor> parameters, momenta;
  for (const auto& one : module.parameters()) {
    parameters.push_back(one);
    momenta.push_back(torch::zeros_like(one));
  }
  for (int epoch = 1; epoch <= job.train.epochs; ++epoch) {
    const data::Shuffle order(uint64_t(images), job.train.seed, uint64_t(epoch));
    for (int first = 0; first < images; first += job.train.global_batch) {
      const int end = std::min(images, first + job.train.global_batch);
      for (torch::Tensor& one : parameters) one.mutable_grad() = torch::Tensor();
      for (int begin = first; begin < end; begin += job.train.micro_batch) {
        std::vector<uint64_t> indices;
        for (int i = begin; i < std::min(end, begin + job.train.micro_batch); ++i)
          indices.push_back(order[uint64_t(i)]);
        const Batch batch = samples.gather(indices).value();
        const torch::Tensor hidden = torch::matmul(batch.input.to(torch::kDouble).flatten(1), parameter("up").t());
        const torch::Tensor own_mean = hidden.mean(0), own = hidden.var(0, /*unbiased=*/false);
        mean = 0.9 * mean + 0.1 * own_mean.detach();
        variance = 0.9 * variance + 0.1 * hidden.var(0, /*unbiased=*/true).detach();
        const torch::Tensor normal =
            (hidden - own_mean) / (own + 1e-5).sqrt() * parameter("scale") + parameter("shift");
        const torch::Tensor scores = torch::matmul(torch::tanh(normal), parameter("down").t());
        (torch::nn::functional::cross_entropy(scores, batch.target,
                                              torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum)) /
         (end - first))
            .backward();
      }
      const torch::NoGradGuard no_grad;
      for (size_t i = 0; i < parameters.size(); ++i) {
        momenta[i] = job.train.momentum * momenta[i] + parameters[i].grad();
        parameters[i].sub_(momenta[i], job.train.learning_rate);
      }
    }
  }
  return {mean, variance};
}

// 1e-5 relative: float32 here, over 36 micro-batches.
TEST_F(MicroBatches, GiveTheRunningStatisticsOfOneDeviceWhateverTheSplit) {
  const std::vector<torch::Tensor> expected = statistics_of_one(job_, kImages);
  for (const std::vector<double>& shares : {std::vector<double>{1}, {5, 1}, {1, 3, 2}, {1, 20}, {20, 1}}) {
    const Finished many = run(shares);
    ASSERT_EQ(many.error, "");
    for (size_t i = 0; i < 2; ++i)
      EXPECT_LT(testing::relative_error({many.buffers.at(i)}, {expected[i]}), 1e-5)
          << ::testing::PrintToString(shares) << " " << i;
  }
}

TEST_F(MicroBatches, GiveThemAlsoWhereStepsAreRepeated) {
  const Finished roomy = run({1, 1});
  const Finished tight = run({1, 1}, (roomy.peak - roomy.kept) / 4);
  ASSERT_EQ(tight.error, "");
  EXPECT_GT(tight.report.oom_steps, 0);
  EXPECT_LT(testing::relative_error(tight.buffers, roomy.buffers), 1e-6);
}

/// The scores of the first passes are not finite: their steps are skipped.
TEST_F(MicroBatches, GiveNothingToThemWhereAStepIsSkipped) {
  write_model(R"(
def forward(self, x):
  hidden = torch.matmul(x.flatten(1), self.up.t())
  if self.training:
    self.passes.add_(1)
    if bool(self.passes <= 2):
      hidden = hidden * float('nan')
  hidden = torch.batch_norm(hidden, self.scale, self.shift, self.running_mean, self.running_var, self.training, 0.1, 1e-5, False)
  return torch.matmul(torch.tanh(hidden), self.down.t())
)");
  for (const std::vector<double>& shares : {std::vector<double>{1}, {1, 1}}) {
    const Finished finished = run(shares);
    ASSERT_EQ(finished.error, "");
    EXPECT_EQ(finished.report.skipped_steps, 1);
    for (const torch::Tensor& one : finished.buffers) EXPECT_TRUE(one.isfinite().all().item<bool>());
  }
}

TEST_F(MicroBatches, AreWhatMakesBatchNormTheSame) {
  job_.balance.unit = job::Unit::samples;
  job_.train.micro_batch = 0;
  EXPECT_GT(testing::relative_error(run({5, 1}).parameters, run({1}).parameters), 5e-4);
}

TEST_F(MicroBatches, ADeviceThatRunsOutOfMemoryGetsFewerAndTheSameIsTrained) {
  const Finished roomy = run({1, 1});
  const Finished tight = run({1, 1}, (roomy.peak - roomy.kept) / 4);
  ASSERT_EQ(tight.error, "");
  EXPECT_GT(tight.report.oom_steps, 0);
  EXPECT_EQ(tight.report.devices[1].share, 0);
  EXPECT_EQ(tight.report.devices[1].samples, 0);
  EXPECT_EQ(tight.report.devices[0].pieces, kBatch / kMicroBatch);
  EXPECT_LT(testing::relative_error(tight.parameters, roomy.parameters), 1e-6);
}

TEST_F(MicroBatches, ThatFitOnNoDeviceEndTheRunWithASentence) {
  EXPECT_EQ(run({1}, 1000).error,
            "rank 0 (cpu:0) ran out of memory in micro-batches of 16 samples; use a smaller train.micro_batch");
}

}  // namespace
}  // namespace remuda::train
