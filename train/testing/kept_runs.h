// Tests only: runs that keep their state in a folder, end, and go on.
#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <utility>

#include "base/testing/scratch_folder.h"
#include "comm/testing/run_ranks.h"
#include "train/testing/data_files.h"
#include "train/testing/script_models.h"
#include "train/trainer.h"

namespace remuda::train::testing {

inline constexpr int kKeptSide = 12, kKeptImages = 250, kGlobal = 60, kKeptSteps = 5;

class KeptRuns : public ::testing::Test {
 protected:
  KeptRuns() {
    job_.data = write_samples(folder_, {.input = {1, kKeptSide, kKeptSide, 5, 0}}, kKeptImages);
    job_.data.test = job_.data.train;
    job_.train = {.epochs = 3, .global_batch = kGlobal, .optimizer = job::Optimizer::adamw, .learning_rate = 0.01};
    job_.checkpoint = {.folder = folder_.path("kept"), .keep = 3};
    split({1, 2});
    job_.model = {.path = folder_.path("model.pt")};
    write_two_layers(job_.model.path, kKeptSide * kKeptSide);
  }

  void split(std::vector<double> shares) {
    job_.devices.clear();
    for (size_t i = 0; i < shares.size(); ++i) job_.devices.push_back({"cpu:" + std::to_string(i)});
    job_.balance = {balance::BalancePolicy::fixed, std::move(shares)};
  }

  struct Finished {
    RunReport report;  ///< of rank 0
    torch::Tensor parameters, buffers;
    std::string error;  ///< of rank 0
  };

  Finished run(bool leave = false) {
    Finished finished;
    const std::atomic<bool> leaving = leave;
    const Events events(-1);
    comm::run_ranks(int(job_.devices.size()), transport_, [&](comm::Communicator& communicator) {
      const auto trainer = Trainer::create(job_, communicator, events, leaving, {.write_pause_s = 0.001});
      const auto report = trainer ? (*trainer)->run() : tl::unexpected(trainer.error());
      if (communicator.rank() != 0) return;
      if (!report) {
        finished.error = report.error().message;
        return;
      }
      finished.report = *report;
      std::vector<torch::Tensor> all;
      for (const auto& one : (*trainer)->model().named_parameters()) all.push_back(one.tensor.flatten());
      finished.parameters = torch::cat(all).detach().clone();
      const std::vector<torch::Tensor> buffers = (*trainer)->model().buffers();
      if (!buffers.empty()) finished.buffers = torch::cat(buffers).clone();
    });
    return finished;
  }

  /// So many steps of the run, and then the rest of it on these devices.
  Finished run_in_two(int first, std::vector<double> shares) {
    job_.train.max_steps = first;
    const Finished begun = run();
    EXPECT_EQ(begun.error, "");
    EXPECT_EQ(begun.report.steps, first);
    EXPECT_EQ(begun.report.checkpoints.written, 1) << "at its end";
    job_.train.max_steps = 0;
    split(std::move(shares));
    job_.checkpoint.resume = job::Switch::on;
    const Finished rest = run();
    EXPECT_EQ(rest.error, "");
    EXPECT_EQ(rest.report.checkpoints.resumed_from, first);
    return rest;
  }

  /// A run of two ranks, of which the other one makes no more than so many steps: what rank 0 leaves then.
  Inheritance run_until_lost(int step) {
    Inheritance left;
    const std::atomic<bool> leaving = false;
    const Events events(-1);
    job::TrainJob shorter = job_;
    shorter.train.max_steps = step;
    comm::run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const bool is_first = communicator.rank() == 0;
      const auto trainer = Trainer::create(is_first ? job_ : shorter, communicator, events, leaving);
      EXPECT_FALSE((*trainer)->run());
      if (is_first) left = (*trainer)->bequest();
    });
    return left;
  }

  Finished run_without() {
    const job::CheckpointSpec kept = std::exchange(job_.checkpoint, {});
    const Finished whole = run();
    EXPECT_EQ(whole.error, "");
    job_.checkpoint = kept;
    return whole;
  }

  std::vector<int64_t> steps() const {
    std::vector<int64_t> steps;
    const auto all = checkpoint::stored_in(job_.checkpoint.folder);
    for (const auto& one : all.value()) steps.push_back(one.step);
    return steps;
  }

  const ScratchFolder folder_;
  job::TrainJob job_;
  comm::ConnectOptions::Transport transport_ = comm::kSharedMemory;
};

}  // namespace remuda::train::testing
