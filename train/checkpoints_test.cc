// Runs that are ended and go on: they learn what a run learns that was never ended.
#include "train/checkpoints.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include "base/file.h"
#include "checkpoint/testing/files.h"
#include "train/model/make_model.h"
#include "train/precision.h"
#include "train/testing/kept_runs.h"
#include "train/testing/precision.h"
#include "train/weights.h"

namespace remuda::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::kGlobal, testing::kKeptImages, testing::kKeptSide, testing::kKeptSteps;

using CheckpointsTest = testing::KeptRuns;

double kept_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

TEST_F(CheckpointsTest, TheSameRanksGoOnWithTheSameBits) {
  job_.train.clip_norm = 0.5;
  job_.train.average = 0.9;
  const Finished whole = run_without();
  for (const int first : {1, kKeptSteps, kKeptSteps + 2, 3 * kKeptSteps - 1}) {
    SCOPED_TRACE(first);
    fs::remove_all(job_.checkpoint.folder);
    const Finished rest = run_in_two(first, {1, 2});
    EXPECT_TRUE(rest.parameters.equal(whole.parameters));
    EXPECT_TRUE(rest.buffers.allclose(whole.buffers, 1e-6)) << "a mean of the ranks, taken once more";
    EXPECT_EQ(rest.report.steps, 3 * kKeptSteps);
    EXPECT_EQ(rest.report.loss_per_epoch, whole.report.loss_per_epoch);
    EXPECT_EQ(rest.report.test->loss, whole.report.test->loss);
    double timed = 0;
    for (int step = first + kUntimedSteps + 1; step <= 3 * kKeptSteps; ++step)
      timed += step % kKeptSteps == 0 ? kKeptImages % kGlobal : kGlobal;
    EXPECT_EQ(rest.report.timed_samples, timed) << "the first steps of a run settle, also where it goes on";
    job_.checkpoint.resume = job::Switch::off;
  }
}

// Of a built-in model parameters arrive under the next forward pass, also while its state is copied and written.
TEST_F(CheckpointsTest, AreBegunWhileParametersArrive) {
  job_.model = {.name = "mlp", .hidden = {64, 32}};
  const std::string weights = folder_.path("first.safetensors");  // threads draw random numbers in any order
  const auto model = make_model(job_.model, {1, kKeptSide, kKeptSide, 5, 0}).value();
  ASSERT_TRUE(write_weights(*model, PendingFile::create(weights).value(), 0, [] {}));
  job_.model.weights = weights;
  const Finished whole = run_without();
  job_.checkpoint.every_steps = 1;
  const Finished kept = run();
  ASSERT_EQ(kept.error, "");
  EXPECT_TRUE(kept.parameters.equal(whole.parameters));
  const std::vector<int64_t> all = steps();
  ASSERT_GE(all.size(), 2U);
  fs::remove_all(checkpoint::place_of(job_.checkpoint.folder, all.back()).folder);
  job_.checkpoint.resume = job::Switch::on;
  const Finished rest = run();
  EXPECT_EQ(rest.report.checkpoints.resumed_from, all[all.size() - 2]);
  EXPECT_TRUE(rest.parameters.equal(whole.parameters));
}

// By the samples that each rank has seen since the last mean, also before the run was ended.
TEST_F(CheckpointsTest, BuffersAreAveragedByTheSamplesOfTheWholeRun) {
  torch::jit::Module module("counts");
  module.register_parameter("weight", testing::script_weight(5, kKeptSide * kKeptSide), false);
  module.register_buffer("seen", torch::zeros({1}));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(
      "def forward(self, x):\n  if self.training:\n    self.seen.add_(x.size(0))\n"
      "  return torch.matmul(x.flatten(1), self.weight.t())\n");
  module.save(job_.model.path);
  job_.data.test = {};
  job_.train.epochs = 1;
  const Finished rest = run_in_two(1, {2, 1});
  const double first = 20 + 3 * 40 + 7, second = 40 + 3 * 20 + 3;
  EXPECT_NEAR(rest.buffers.item<double>(), (first * first + second * second) / kKeptImages, 1e-3);
}

// With fp16 alone it scales anything, but all ranks keep it.
TEST_F(CheckpointsTest, TheLossScaleGoesOnFromWhereItWas) {
  testing::write_two_layers(job_.model.path, kKeptSide * kKeptSide, 2);
  const double first = LossScale().scale();
  run_in_two(3, {1, 2});
  const Json run = checkpoint::read_manifest(checkpoint::place_of(job_.checkpoint.folder, 3 * kKeptSteps))->run;
  EXPECT_EQ(run["skipped_steps"], 2);
  EXPECT_EQ(run["loss_scale"], first / 4) << "halved by each of the first two steps";
  EXPECT_EQ(run["finite_in_a_row"], 3 * kKeptSteps - 2);
}

// 1e-6: sums of float32 in another order, over eight steps.
TEST_F(CheckpointsTest, AnyNumberOfRanksGoesOnFromAnyOther) {
  for (const auto type : {job::Optimizer::adamw, job::Optimizer::sgd}) {
    job_.train.optimizer = type;
    split({1, 1, 1});
    const Finished whole = run_without();
    for (const std::vector<double>& shares : {std::vector<double>{1}, {3, 1}, {1, 2, 1, 4}}) {
      SCOPED_TRACE(shares.size());
      split({1, 1, 1});
      job_.checkpoint.resume = job::Switch::off;
      fs::remove_all(job_.checkpoint.folder);
      const Finished rest = run_in_two(kKeptSteps + 2, shares);
      EXPECT_LT(kept_difference(rest.parameters, whole.parameters), 1e-6);
      for (size_t epoch = 0; epoch < 3; ++epoch)
        EXPECT_NEAR(rest.report.loss_per_epoch.at(epoch), whole.report.loss_per_epoch.at(epoch), 1e-6);
    }
  }
}

TEST_F(CheckpointsTest, OwnersGoOnFromWhatTheyHadUnrounded) {
  if (!testing::cpu_has_bf16()) GTEST_SKIP() << testing::kNoBf16;
  job_.train.precision = job::Precision::bf16;
  const Finished whole = run_without();
  const Finished rest = run_in_two(kKeptSteps + 2, {1, 2});
  EXPECT_EQ(rest.report.sent_as, torch::kBFloat16);
  EXPECT_TRUE(rest.parameters.equal(whole.parameters));
}

TEST_F(CheckpointsTest, AreWrittenEverySoManyStepsAndOldOnesGo) {
  job_.checkpoint.every_steps = 4;
  job_.checkpoint.keep = 2;
  const Finished finished = run();
  EXPECT_EQ(finished.error, "");
  EXPECT_GE(finished.report.checkpoints.written, 2) << "one is under way at a time, and one comes at the end";
  EXPECT_EQ(steps().size(), 2U);
  EXPECT_EQ(steps().back(), 3 * kKeptSteps);
  const auto all = checkpoint::stored_in(job_.checkpoint.folder);
  for (const auto& one : all.value()) EXPECT_TRUE(checkpoint::verify(one));
}

TEST_F(CheckpointsTest, ARunThatIsAskedToStopKeepsItsState) {
  const Finished whole = run_without();
  job_.checkpoint.every_steps = 1;
  job_.train.max_steps = 3;
  run();
  job_.train.max_steps = 0;
  job_.checkpoint.resume = job::Switch::on;
  job_.checkpoint.every_steps = 0;
  const Finished stopped = run(true);
  EXPECT_TRUE(stopped.report.stopped);
  EXPECT_EQ(stopped.report.checkpoints.resumed_from, 3);
  EXPECT_TRUE(run().parameters.equal(whole.parameters));
}

TEST_F(CheckpointsTest, ADamagedOneIsPassedOver) {
  const Finished whole = run_without();
  run_in_two(4, {1, 2});
  ASSERT_THAT(steps(), ElementsAre(4, 3 * kKeptSteps));
  fs::resize_file(fs::path(checkpoint::place_of(job_.checkpoint.folder, 3 * kKeptSteps).folder) / "rank-1.safetensors",
                  100);
  const Finished again = run();
  EXPECT_EQ(again.error, "");
  EXPECT_EQ(again.report.checkpoints.resumed_from, 4);
  EXPECT_TRUE(again.parameters.equal(whole.parameters));
}

// It shows while it is loaded, on the rank that loads it: nothing of it counts then. Of generators, also where other
// ranks go on, who do not need them.
TEST_F(CheckpointsTest, AFlippedBitInAnyFileSendsAllRanksToTheOneBefore) {
  const Finished whole = run_without();
  run_in_two(4, {1, 2});
  const fs::path newest = checkpoint::place_of(job_.checkpoint.folder, 3 * kKeptSteps).folder;
  for (const char* file : {"rank-0.safetensors", "rank-1.safetensors", "manifest.json"})
    for (const long at : {0L, -1L}) {
      SCOPED_TRACE(std::string(file) + " " + std::to_string(at));
      checkpoint::flip_bit(newest / file, at);
      const Finished again = run();  // which writes the newest one anew
      EXPECT_EQ(again.error, "");
      EXPECT_EQ(again.report.checkpoints.resumed_from, 4);
      EXPECT_TRUE(again.parameters.equal(whole.parameters));
      EXPECT_TRUE(again.buffers.allclose(whole.buffers, 1e-6)) << "a mean of the ranks, taken once more";
    }
  checkpoint::flip_bit(newest / "rank-1.safetensors", -1);
  split({1});
  EXPECT_EQ(run().report.checkpoints.resumed_from, 4);
}

// As all that are damaged, it says so: half of it may have been loaded.
TEST_F(CheckpointsTest, WhereTheOnlyOneShowsItsDamageAsItIsLoadedNoRunBegins) {
  job_.train.max_steps = 2;
  run();
  const std::string file =
      (fs::path(checkpoint::place_of(job_.checkpoint.folder, 2).folder) / checkpoint::file_of_rank(0)).string();
  checkpoint::flip_bit(file, -1);
  job_.checkpoint.resume = job::Switch::on;
  EXPECT_THAT(run().error, HasSubstr("is whole: " + file + " is damaged: its sum is"));
}

// To begin anew in their place would lose what was learned, if they can be mended.
TEST_F(CheckpointsTest, WhereAllAreDamagedNoRunBegins) {
  job_.train.max_steps = 2;
  run();
  const std::string file =
      (fs::path(checkpoint::place_of(job_.checkpoint.folder, 2).folder) / checkpoint::file_of_rank(0)).string();
  fs::resize_file(file, 100);
  job_.checkpoint.resume = job::Switch::on;
  const std::string why = run().error;
  EXPECT_THAT(why,
              HasSubstr("no checkpoint in " + job_.checkpoint.folder + " is whole: " + file + " is damaged: it has"));
  EXPECT_THAT(why, HasSubstr("; a run that begins needs another folder"));
}

TEST_F(CheckpointsTest, ARunOfAnotherKindIsRefused) {
  job_.train.max_steps = 2;
  run();
  job_.checkpoint.resume = job::Switch::on;
  const job::TrainJob same = job_;
  job_.train.optimizer = job::Optimizer::sgd;
  EXPECT_THAT(run().error, HasSubstr("is of a run with another train.optimizer: \"adamw\" there, \"sgd\" here"));
  job_ = same;
  job_.train.seed = 9;
  EXPECT_THAT(run().error, HasSubstr("train.seed: 1 there, 9 here"));
  job_ = same;
  job_.train.global_batch = 30;  // the steps that were made would be others
  EXPECT_THAT(run().error, HasSubstr("train.global_batch: 60 there, 30 here"));
  job_ = same;
  job_.model = {.name = "mlp", .hidden = {8}};
  EXPECT_THAT(run().error, HasSubstr("is of another model: they differ first in"));
  job_ = same;
  EXPECT_EQ(run().error, "");
}

// Also where it had ended within an epoch, at train.max_steps.
TEST_F(CheckpointsTest, ARunThatHadFinishedSaysTheSameOnceMore) {
  for (const int steps : {0, kKeptSteps + 2}) {
    SCOPED_TRACE(steps);
    job_.train.max_steps = steps;
    job_.checkpoint.folder = folder_.path("kept-" + std::to_string(steps));
    job_.checkpoint.resume = job::Switch::off;
    const Finished first = run();
    job_.checkpoint.resume = job::Switch::on;
    const Finished again = run();
    EXPECT_EQ(again.error, "");
    EXPECT_EQ(again.report.steps, first.report.steps);
    EXPECT_EQ(again.report.loss_per_epoch, first.report.loss_per_epoch);
    ASSERT_TRUE(again.report.test);
    EXPECT_EQ(again.report.test->loss, first.report.test->loss);
    EXPECT_TRUE(again.parameters.equal(first.parameters));
    EXPECT_EQ(again.report.checkpoints.written, 0) << "it is there";
  }
}

// The second rank has no samples, and so its buffers are those of the epoch before.
TEST_F(CheckpointsTest, BuffersCountByWhatTheirRankHasSeen) {
  split({1, 0});
  const Finished whole = run_without();
  const Finished rest = run_in_two(kKeptSteps + 2, {1});
  EXPECT_TRUE(rest.buffers.allclose(whole.buffers, 1e-6)) << rest.buffers << whole.buffers;
}

TEST_F(CheckpointsTest, WhatWasLearnedOfTheSameDevicesIsKept) {
  job_.balance = {};
  job_.train.max_steps = kKeptSteps + 2;
  const Finished first = run();
  EXPECT_FALSE(first.report.checkpoints.balance_kept);
  job_.train.max_steps = 0;
  job_.checkpoint.resume = job::Switch::on;
  const Finished rest = run();
  EXPECT_EQ(rest.error, "");
  EXPECT_TRUE(rest.report.checkpoints.balance_kept);
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(rest.report.devices[rank].alone_measurements, first.report.devices[rank].alone_measurements);
  job_.devices[1].slowdown = 2;
  const Finished other = run();
  EXPECT_EQ(other.error, "");
  EXPECT_EQ(other.report.checkpoints.resumed_from, 3 * kKeptSteps);
  EXPECT_FALSE(other.report.checkpoints.balance_kept);
}

TEST_F(CheckpointsTest, WithoutOneARunBegins) {
  job_.checkpoint.resume = job::Switch::on;
  const Finished finished = run();
  EXPECT_EQ(finished.error, "");
  EXPECT_EQ(finished.report.checkpoints.resumed_from, 0);
  EXPECT_EQ(finished.report.steps, 3 * kKeptSteps);
}

TEST_F(CheckpointsTest, ARunGoesOnWithoutOneThatCannotBeWritten) {
  const Finished whole = run_without();
  job_.checkpoint.folder = folder_.write("file", "") + "/kept";
  job_.checkpoint.every_steps = 4;
  const Finished finished = run();
  EXPECT_EQ(finished.error, "");
  EXPECT_EQ(finished.report.checkpoints.written, 0);
  EXPECT_GE(finished.report.checkpoints.failed, 1);
  EXPECT_LE(finished.report.checkpoints.failed, 4) << "after steps 4, 8 and 12 and at the end, however often tried";
  ASSERT_EQ(finished.report.unwritten.size(), 1u) << "the last one";
  EXPECT_EQ(finished.report.unwritten[0].output, "checkpoint");
  EXPECT_THAT(finished.report.unwritten[0].why, ::testing::HasSubstr(job_.checkpoint.folder));
  EXPECT_GT(finished.report.unwritten[0].bytes, 0u) << "of all ranks";
  EXPECT_TRUE(finished.parameters.equal(whole.parameters));
}

TEST_F(CheckpointsTest, TheLastOneIsTriedAgainWhereOneRankCouldNotWriteIt) {
  job_.train.max_steps = 2;
  const std::string folder = checkpoint::place_of(job_.checkpoint.folder, 2).folder;
  fs::create_directories(fs::path(folder) / checkpoint::file_of_rank(1));  // in the way of a file
  const Finished finished = run();
  EXPECT_EQ(finished.error, "");
  EXPECT_EQ(finished.report.checkpoints.failed, 0);
  EXPECT_EQ(finished.report.checkpoints.written, 1) << "as nothing was left in the way of it";
  EXPECT_TRUE(finished.report.unwritten.empty());
  EXPECT_TRUE(checkpoint::verify(checkpoint::place_of(job_.checkpoint.folder, 2)));
}

// Whoever goes on does not know of it.
TEST_F(CheckpointsTest, OneThatIsWholeIsCountedAlsoWhereTheRunEndsFirst) {
  job_.checkpoint.every_steps = 1;
  job_.checkpoint.keep = 100;
  for (int step = 2; step < 12; ++step) {
    SCOPED_TRACE(step);
    job_.checkpoint.folder = folder_.path("kept-" + std::to_string(step));
    const int written = run_until_lost(step).checkpoints.written;
    EXPECT_EQ(size_t(written), steps().size());
  }
}

// Nobody waits until all of it is on the disk; it may be there all the same, where the disk is quicker than the loss.
TEST_F(CheckpointsTest, OneThatIsBeingWrittenWhenARankIsLostIsGivenUp) {
  constexpr int kBuffers = 8, kBufferSize = 1 << 20, kTries = 10;  // a step takes far less time than to write them
  torch::jit::Module module("ballast");
  module.register_parameter("weight", torch::full({5, kKeptSide * kKeptSide}, 0.01).requires_grad_(), false);
  for (int i = 0; i < kBuffers; ++i) module.register_buffer("b" + std::to_string(i), torch::zeros({kBufferSize}));
  module.define("def forward(self, x):\n  return torch.matmul(x.flatten(1), self.weight.t())\n");
  module.save(job_.model.path);
  job_.checkpoint.every_steps = 2;
  bool given_up = false;
  for (int i = 0; i < kTries && !given_up; ++i) {
    job_.checkpoint.folder = folder_.path("kept-" + std::to_string(i));
    EXPECT_EQ(run_until_lost(2).checkpoints.written, 0);
    EXPECT_TRUE(steps().empty());
    const checkpoint::Stored begun = checkpoint::place_of(job_.checkpoint.folder, 2);
    given_up = fs::exists(begun.folder) && fs::is_empty(begun.folder);
  }
  EXPECT_TRUE(given_up);
}

}  // namespace
}  // namespace remuda::train
