// Whole runs, each rank a thread of this process.
#include "train/trainer.h"

#include <chrono>
#include <csignal>
#include <deque>
#include <fcntl.h>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <torch/script.h>
#include <unistd.h>

#include "base/file.h"
#include "comm/testing/run_ranks.h"
#include "train/testing/capped_memory.h"
#include "train/testing/cases.h"
#include "train/testing/data_files.h"
#include "train/testing/precision.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;
using Transport = comm::ConnectOptions::Transport;

constexpr int kSide = 12, kImages = 250;

/// A job on small images. Its model is a file, so that every run starts with the same parameters: ranks that are
/// threads share libtorch's random numbers.
class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    job_.data = testing::write_samples(folder_, {.input = {1, kSide, kSide, 5, 0}}, kImages);
    job_.train = {.epochs = 2, .global_batch = 120, .learning_rate = 0.01};
    use_model("torch.matmul(torch.relu(x.flatten(1)), self.weight.t())");
  }

  void use_model(const std::string& expression) {
    torch::jit::Module module("linear");
    const auto weight = torch::arange(5 * kSide * kSide, torch::kFloat).sin().mul(0.1).view({5, kSide * kSide});
    module.register_parameter("weight", weight.detach().requires_grad_(), false);
    module.define("def forward(self, x):\n  return " + expression + "\n");
    job_.model = {.path = folder_.path("model.pt")};
    module.save(job_.model.path);
  }

  void use_devices(int count) {
    job_.devices.clear();
    for (int i = 0; i < count; ++i) job_.devices.push_back({"cpu:" + std::to_string(i)});
  }

  void split(std::vector<double> shares) {
    use_devices(int(shares.size()));
    job_.balance = {balance::BalancePolicy::fixed, std::move(shares)};
  }

  struct Finished {
    RunReport report;  ///< of rank 0
    std::vector<torch::Tensor> parameters;
    size_t kept = 0, peak = 0;  ///< bytes of the last rank: before the first step, and at most
  };

  /// Runs the job. The last rank has `room` bytes for training, besides what it allocated before the first step.
  Finished run(size_t room = SIZE_MAX, bool leave = false) {
    Finished finished;
    const int ranks = int(job_.devices.size());
    finished.parameters.resize(size_t(ranks));
    const std::atomic<bool> leaving = leave;
    std::deque<testing::Budget>& budgets = budgets_.emplace_back(size_t(ranks));
    const Events events(-1);
    run_ranks(ranks, Transport::shared_memory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      testing::Budget& budget = budgets[size_t(rank)];
      const testing::OnDevice device(budget);
      const auto trainer = Trainer::create(job_, communicator, events, leaving);
      ASSERT_TRUE(trainer) << trainer.error().message;
      const size_t kept = budget.used;
      budget.peak = kept;
      if (rank == ranks - 1 && room < SIZE_MAX) budget.cap = kept + room;
      const auto report = (*trainer)->run();
      ASSERT_TRUE(report) << report.error().message;
      finished.parameters[size_t(rank)] = (*trainer)->parameters().parameters()[0].detach().flatten().clone();
      if (rank == 0) finished.report = *report;
      if (rank == ranks - 1) finished.kept = kept, finished.peak = budget.peak;
    });
    return finished;
  }

  const ScratchFolder folder_;
  job::TrainJob job_;
  std::deque<std::deque<testing::Budget>> budgets_;  ///< of each run's ranks; they outlive the parameters in Finished
};

double relative_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

/// The same training by plain libtorch, without ranks, buckets and a trainer around it.
struct Plain {
  torch::Tensor parameters;
  std::vector<double> loss_per_epoch;
};

Plain train_plainly(const job::TrainJob& job) {
  auto module = torch::jit::load(job.model.path);
  torch::Tensor weight = (*module.parameters().begin()).detach().requires_grad_();
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (job.train.optimizer == job::Optimizer::sgd)
    optimizer = std::make_unique<torch::optim::SGD>(
        std::vector{weight}, torch::optim::SGDOptions(job.train.learning_rate).momentum(job.train.momentum));
  else
    optimizer = std::make_unique<torch::optim::AdamW>(
        std::vector{weight}, torch::optim::AdamWOptions(job.train.learning_rate).weight_decay(0));
  const Samples samples = Samples::open(job.data, data::Split::train, job.model).value();
  Plain plain;
  for (int epoch = 1; epoch <= job.train.epochs; ++epoch) {
    const data::Shuffle order(kImages, job.train.seed, uint64_t(epoch));
    double loss_sum = 0;
    for (int first = 0; first < kImages; first += job.train.global_batch) {
      std::vector<uint64_t> indices;
      for (int i = first; i < std::min(kImages, first + job.train.global_batch); ++i)
        indices.push_back(order[uint64_t(i)]);
      const Batch batch = samples.gather(indices).value();
      const auto scores = torch::matmul(torch::relu(batch.input.flatten(1)), weight.t());
      const auto loss = torch::nn::functional::cross_entropy(scores, batch.target);
      loss_sum += loss.item<double>() * double(indices.size());
      weight.mutable_grad() = torch::Tensor();
      loss.backward();
      optimizer->step();
    }
    plain.loss_per_epoch.push_back(loss_sum / kImages);
  }
  plain.parameters = weight.detach().flatten();
  return plain;
}

/// Sent in 16 bits while it trains; what is written is what its owners keep.
TEST_F(TrainerTest, ARunInShortPrecisionEndsWithUnroundedParameters) {
  if (!testing::cpu_has_bf16()) GTEST_SKIP() << testing::kNoBf16;
  job_.train.precision = job::Precision::bf16;
  for (const double average : {0.0, 0.9}) {
    job_.train.average = average;
    split({1, 1});
    const Finished finished = run();
    EXPECT_EQ(finished.report.sent_as, torch::kBFloat16);
    const torch::Tensor& weight = finished.parameters[0];
    EXPECT_FALSE(weight.to(torch::kBFloat16).to(torch::kFloat).equal(weight)) << "rounded";
    EXPECT_TRUE(finished.parameters[1].equal(weight));
  }
}

/// It is left out, gets no parameters while the other rank makes steps, and writes what comes of them.
TEST_F(TrainerTest, TheFirstRankEndsWithWhatTheOnlyOneThatComputesKeeps) {
  for (const auto precision : {job::Precision::fp32, job::Precision::bf16}) {
    if (precision == job::Precision::bf16 && !testing::cpu_has_bf16()) continue;
    for (const double average : {0.0, 0.9}) {
      SCOPED_TRACE(average);
      job_.train.precision = precision;
      job_.train.average = average;
      split({1});
      const Finished one = run();
      split({0, 1});
      job_.balance.state_shares = {0, 1};
      const Finished both = run();
      EXPECT_EQ(both.report.devices[0].samples, 0);
      EXPECT_LT(relative_difference(both.parameters[0], one.parameters[0]), 1e-6);
      EXPECT_TRUE(both.parameters[0].equal(both.parameters[1]));
    }
  }
}

/// A gradient of 8 bits of mantissa moves the parameters a little, and all ranks alike.
TEST_F(TrainerTest, GradientsThatAreSentIn16BitsTrainNearlyTheSame) {
  split({1});
  const Finished one = run();
  split({5, 2, 1});
  job_.train.gradients = job::Precision::bf16;
  const Finished many = run();
  EXPECT_EQ(one.report.gradients_sent_as, torch::kFloat);
  EXPECT_EQ(many.report.gradients_sent_as, torch::kBFloat16);
  for (const auto& parameters : many.parameters) EXPECT_TRUE(parameters.equal(many.parameters[0]));
  const double difference = relative_difference(many.parameters[0], one.parameters[0]);
  EXPECT_LT(difference, 1e-2);
  EXPECT_GT(difference, 1e-5) << "they are rounded";
}

TEST_F(TrainerTest, OneDeviceTrainsAsPlainLibtorchDoes) {
  for (const auto optimizer : {job::Optimizer::sgd, job::Optimizer::adamw}) {
    job_.train.optimizer = optimizer;
    split({1});
    const Finished one = run();
    const Plain plain = train_plainly(job_);
    EXPECT_LT(relative_difference(one.parameters[0], plain.parameters), 1e-5);
    ASSERT_EQ(one.report.loss_per_epoch.size(), plain.loss_per_epoch.size());
    for (size_t i = 0; i < plain.loss_per_epoch.size(); ++i)
      EXPECT_NEAR(one.report.loss_per_epoch[i], plain.loss_per_epoch[i], 1e-5) << "epoch " << i + 1;
  }
}

TEST_F(TrainerTest, StepThatIsNotFiniteIsLeftOut) {
  use_model("torch.matmul(x.flatten(1), self.weight.t()) * (1.0 if x.size(0) == 120 else float('inf'))");
  split({1});
  const Finished finished = run();
  EXPECT_EQ(finished.report.steps, 2 * 3);
  EXPECT_EQ(finished.report.skipped_steps, 2) << "the last batch of each epoch has ten samples";
  EXPECT_TRUE(finished.parameters[0].isfinite().all().item<bool>());
}

TEST_F(TrainerTest, AnySplitTrainsTheParametersOfOneDevice) {
  for (const auto optimizer : {job::Optimizer::sgd, job::Optimizer::adamw}) {
    job_.train.optimizer = optimizer;
    split({1});
    const Finished one = run();
    EXPECT_EQ(one.report.steps, 2 * 3) << "the last batch of an epoch is smaller";
    split({5, 2, 1});
    const Finished many = run();
    ASSERT_EQ(one.report.loss_per_epoch.size(), many.report.loss_per_epoch.size());
    for (size_t i = 0; i < one.report.loss_per_epoch.size(); ++i)
      EXPECT_NEAR(many.report.loss_per_epoch[i], one.report.loss_per_epoch[i], 1e-5);
    EXPECT_LT(one.report.loss_per_epoch[1], one.report.loss_per_epoch[0]) << "it trains";
    for (const auto& parameters : many.parameters) {
      EXPECT_TRUE(parameters.equal(many.parameters[0])) << "ranks are bit-identical";
      EXPECT_LT(relative_difference(parameters, one.parameters[0]), 1e-5);
    }
    double samples = 0;
    for (const auto& device : many.report.devices) samples += device.samples;
    EXPECT_EQ(samples, 2 * kImages);
  }
}

TEST_F(TrainerTest, MemoryForNoSampleEndsTheRunOnAllRanks) {
  const testing::CappedMemory capped;
  split({1, 1});
  const std::atomic<bool> leave = false;
  const Events events(-1);
  run_ranks(2, Transport::shared_memory, [&](comm::Communicator& communicator) {
    testing::Budget budget;
    const testing::OnDevice device(budget);
    const auto trainer = Trainer::create(job_, communicator, events, leave).value();
    if (communicator.rank() == 1) budget.cap = budget.used + 256;  // a sample has 576 bytes
    const auto report = trainer->run();
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message, HasSubstr("rank 1 (cpu:1) ran out of memory with a single sample"));
  });
}

TEST_F(TrainerTest, AnyNumberOfEpochsIsNoOverflow) {
  split({1});
  job_.train.global_batch = 125;  // two steps in an epoch: 2 * 2147483647 is -2 in an int
  job_.train.epochs = 2147483647;
  job_.train.max_steps = 3;
  EXPECT_EQ(run().report.steps, 3);
}

TEST_F(TrainerTest, RunThatIsStoppedWhileItMeasuresEndsWithAReport) {
  split({1, 1});
  const auto report = run(SIZE_MAX, true).report;
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(report.steps, 0);
  EXPECT_EQ(report.devices.size(), 2u);
  EXPECT_TRUE(report.devices.at(1).alone_measurements.empty());
}

/// A full pipe, whose other end is not read.
struct FullPipe {
  FullPipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    read_end.reset(ends[0]), write_end.reset(ends[1]);
    ::fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
    const std::string lines(4096, '\n');
    while (::write(write_end.get(), lines.data(), lines.size()) > 0) continue;
    ::fcntl(write_end.get(), F_SETFL, 0);
  }
  Fd read_end, write_end;
};

TEST_F(TrainerTest, TrainsOnWhileItsLauncherReadsNothing) {
  ::signal(SIGPIPE, SIG_IGN);
  split({1});
  job_.train.epochs = 30;
  FullPipe pipe;
  auto events = std::make_unique<Events>(pipe.write_end.get());
  const std::atomic<bool> leave = false;
  auto running = std::async(std::launch::async, [&] {
    run_ranks(1, Transport::automatic, [&](comm::Communicator& communicator) {
      const auto report = Trainer::create(job_, communicator, *events, leave).value()->run();
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->loss_per_epoch.size(), 30u);
    });
  });
  EXPECT_EQ(running.wait_for(std::chrono::seconds(120)), std::future_status::ready) << "blocked by its events";
  pipe.read_end.reset();  // a blocked writer goes on
  running.get();
}

/// The error of create() about the model.
std::string refusal(const job::TrainJob& job) {
  std::string sentence = "none";
  run_ranks(1, Transport::automatic, [&](comm::Communicator& communicator) {
    const std::atomic<bool> leave = false;
    const Events events(-1);
    const auto trainer = Trainer::create(job, communicator, events, leave);
    if (trainer) return;
    EXPECT_EQ(trainer.error().kind, ErrorKind::usage);
    sentence = trainer.error().message;
  });
  return sentence;
}

TEST_F(TrainerTest, ModelWhoseOutputIsNoScoresIsRefusedWithWhatItMustGive) {
  split({1});
  use_model("torch.matmul(x.flatten(1), self.weight.t()).sum(1)");
  EXPECT_EQ(refusal(job_), "the model " + job_.model.path +
                               " gives Float of shape [1] for one sample; it must give scores of shape [1, classes], "
                               "with 5 classes");
  use_model("torch.matmul(x.flatten(1), self.weight.t()).narrow(1, 0, 4)");
  EXPECT_THAT(refusal(job_), HasSubstr("gives Float of shape [1, 4] for one sample"));
}

// A transform may give samples to test with another shape than those to train with.
TEST_F(TrainerTest, ModelThatCannotTakeTheSamplesToTestWithIsRefusedBeforeItTrains) {
  split({1});
  use_model("torch.matmul(x.flatten(1), self.weight.t())");
  torch::jit::Module transform("Transform");
  transform.register_attribute("training", c10::BoolType::get(), true);
  transform.define(
      "def forward(self, image):\n  if self.training:\n    return image\n  return image.narrow(1, 0, 6)\n");
  job_.data.transform = folder_.path("transform.pt");
  transform.save(job_.data.transform);
  EXPECT_EQ(refusal(job_), "none");
  job_.data.test = job_.data.train;
  EXPECT_THAT(refusal(job_), HasSubstr("cannot take one sample, Float of shape [1, 1, 6, 12]: "));
}

TEST_F(TrainerTest, ModelThatCannotBeDeterministicIsRefusedWhereItHasToBe) {
  split({1});
  use_model(
      "torch.matmul(x.flatten(1), torch.put(self.weight, torch.zeros([1]).argmax(0), "
      "torch.zeros([1])).t())");
  EXPECT_EQ(refusal(job_), "none");
  job_.train.deterministic = job::Switch::on;
  EXPECT_THAT(refusal(job_), HasSubstr("cannot take one sample, Float of shape [1, 1, 12, 12]: put_ has no kernel on "
                                       "this device that gives the same bits each time"));
  configure_arithmetic({});
}

TEST_F(TrainerTest, ModelThatCannotTakeTheDataIsRefusedWithWhatItIsGiven) {
  split({1});
  use_model("torch.matmul(x, self.weight)");
  const std::string sentence = refusal(job_);
  EXPECT_THAT(sentence, HasSubstr("cannot take one sample, Float of shape [1, 1, 12, 12]: "));
  EXPECT_EQ(sentence.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace remuda::train
