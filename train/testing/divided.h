// Tests only: steps of a model that are divided over CPUs and stand-in accelerators in any way, and the same steps by
// libtorch alone.
#pragma once

#include <gtest/gtest.h>
#include <random>

#include "balance/shares.h"
#include "comm/testing/run_ranks.h"
#include "train/device/collectives.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/standin.h"

namespace remuda::train::testing {

inline constexpr int kDividedBatch = 24;
inline constexpr double kEpsilon = 1e-3;

/// What is to be the same however it is divided.
struct Setting {
  UpdateRule rule;
  bool groups = false;
  double clip_norm = 0;
  torch::ScalarType sent_as = torch::kFloat;

  std::vector<GroupSettings> settings() const {
    return groups ? std::vector<GroupSettings>{{0.02, 0.1}, {0.01, 0}} : std::vector<GroupSettings>{{0.02, 0.1}};
  }
  std::vector<size_t> group_of(const std::vector<torch::Tensor>& parameters) const {
    std::vector<size_t> group_of;
    for (const auto& parameter : parameters) group_of.push_back(groups && parameter.dim() < 2 ? 1 : 0);
    return group_of;
  }
};

/// How it is divided.
struct Division {
  std::vector<std::vector<int>> splits;  ///< of each step's batch
  std::vector<double> state_shares;
  std::vector<std::vector<double>> shares_after;  ///< of the state, after the first steps; none: they stay
  int first_accelerator = 1;  ///< this rank, and every other one from it on, computes on a stand-in; the others on CPUs
  double bucket_bytes = 4096;
  std::vector<UpdatesOn> updates_on;  ///< of each rank
  Streams streams = Streams::shared;
  bool waits_for_updates = true;
  bool lags = false;  ///< after steps of one rank that has everything, the others get nothing while it makes more
  bool equal_parts = false;              ///< by_devices: in one call where they are
  bool by_devices = false;               ///< each computes on a stand-in of its own, and buckets go between these
  std::function<void()> begins = [] {};  ///< called by the last rank when all is connected

  int ranks() const { return int(state_shares.size()); }
  torch::Device device(int rank) const {
    if (by_devices) return {torch::kXPU, c10::DeviceIndex(ranks() - 1 - rank)};
    return rank % 2 == first_accelerator ? torch::Device(torch::kXPU, c10::DeviceIndex(rank / 2)) : torch::kCPU;
  }
};

/// Shares of 0 included.
inline Division random_division(int ranks, int steps, std::mt19937& random) {
  const auto weights = [&] {
    std::vector<double> all(size_t(ranks), 0.0);
    for (double& weight : all) weight = double(random() % 4);
    all[random() % all.size()] += 1;
    return all;
  };
  Division division;
  for (int i = 0; i < steps; ++i) division.splits.push_back(balance::apportion(kDividedBatch, weights()));
  division.state_shares = weights();
  for (int rank = 0; rank < ranks; ++rank)
    division.updates_on.push_back(random() % 2 ? UpdatesOn::host : UpdatesOn::device);
  division.first_accelerator = ranks == 1 ? 0 : int(random() % 2);
  if (random() % 2) division.bucket_bytes = 1;
  if (random() % 2) division.streams = Streams::separate;
  division.waits_for_updates = random() % 2;
  division.lags = random() % 2;
  return division;
}

struct Trained {
  std::vector<torch::Tensor> first_gradient;
  std::vector<torch::Tensor> sent;        ///< the parameters that a further step would compute with
  std::vector<torch::Tensor> parameters;  ///< unrounded, in the order of the model
};

inline std::vector<torch::Tensor> copies_of(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach().to(torch::kCPU).clone());
  return all;
}

/// By libtorch alone: one device, its own optimizers and its own clipping.
inline Trained train_alone(const ModelCase& model_case, const Setting& setting, int steps) {
  const auto model = make_seeded(model_case, torch::kFloat);
  const auto parameters = model->parameters();
  const auto group_of = setting.group_of(parameters);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (size_t group = 0; group < setting.settings().size(); ++group) {
    std::vector<torch::Tensor> members;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (group_of[i] == group) members.push_back(parameters[i]);
    const GroupSettings of = setting.settings()[group];
    groups.emplace_back(members,
                        std::make_unique<torch::optim::AdamWOptions>(
                            torch::optim::AdamWOptions(of.learning_rate).eps(kEpsilon).weight_decay(of.weight_decay)));
  }
  torch::optim::AdamW optimizer(groups);
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    for (const auto& parameter : parameters) parameter.mutable_grad() = torch::zeros_like(parameter);
    const auto loss = case_loss(model_case, *model, make_batch(model_case, kDividedBatch, 100 + step, torch::kFloat));
    (loss.sum / loss.weight).backward();
    if (setting.clip_norm > 0) torch::nn::utils::clip_grad_norm_(parameters, setting.clip_norm);
    if (step == 0) trained.first_gradient = gradients(*model);
    optimizer.step();
  }
  trained.parameters = copies_of(parameters);
  return trained;
}

/// One rank's part of a step.
inline Result<ReducedStep> reduce_part(const ModelCase& model_case, Model& model, DataParallel& parallel,
                                       const Batch& batch, const std::vector<int>& split, int rank) {
  int64_t first = 0;
  for (int before = 0; before < rank; ++before) first += split[size_t(before)];
  std::vector<bool> silent;
  for (const int part : split) silent.push_back(part == 0);
  REMUDA_TRY(parallel.set_silent(silent));
  LossSum loss;
  if (split[size_t(rank)] > 0) {
    const Batch mine = narrow(batch, first, split[size_t(rank)]);
    loss = case_loss(model_case, model, {mine.input.to(parallel.ops().device(), /*non_blocking=*/true), mine.target});
  }
  parallel.begin({.weight = loss.weight});
  if (loss.sum.defined()) loss.sum.backward();
  return parallel.reduce();
}

/// Trained over ranks as `division` says; checks that all end with the same bits. Rank 0 is not the only one whose
/// initial values would be right if the others did not take them over.
inline Trained train_divided(const ModelCase& model_case, const Setting& setting, const Division& division) {
  std::vector<Batch> batches;
  std::vector<std::unique_ptr<Model>> models;
  for (size_t step = 0; step < division.splits.size(); ++step)
    batches.push_back(make_batch(model_case, kDividedBatch, 100 + int64_t(step), torch::kFloat));
  for (int rank = 0; rank < division.ranks(); ++rank) {
    models.push_back(make_seeded(model_case, torch::kFloat));
    const torch::NoGradGuard no_grad;
    if (rank > 0)
      for (const auto& parameter : models.back()->parameters()) torch::Tensor(parameter).mul_(0.5);
    models.back()->to(division.device(rank));
  }
  std::vector<Trained> all(size_t(division.ranks()));
  comm::run_ranks(division.ranks(), comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    Model& model = *models[size_t(rank)];
    const DeviceOps ops = DeviceOps::open(division.device(rank), division.streams).value();
    comm::OpenedCollectives opened;
    if (division.by_devices) {
      opened =
          open_collectives(communicator, ops, {.largest_bytes = 1 << 10, .equal_parts = division.equal_parts}).value();
      if (!opened.collectives) return;
    }
    if (rank == division.ranks() - 1) division.begins();
    const Batch on_device{batches[0].input.to(ops.device()), batches[0].target};
    const ParallelOptions options{.bucket_bytes = division.bucket_bytes,
                                  .rule = setting.rule,
                                  .group_of = setting.group_of(model.parameters()),
                                  .clip_norm = setting.clip_norm,
                                  .updates_on = division.updates_on[size_t(rank)],
                                  .state_shares = division.state_shares,
                                  .collectives = opened.collectives.get(),
                                  .equal_parts = division.equal_parts,
                                  .sent_as = setting.sent_as,
                                  .waits_for_updates = division.waits_for_updates};
    const auto parallel =
        DataParallel::create(communicator, ops, model.parameters(), trial(model_case, model, on_device), options)
            .value();
    Trained& mine = all[size_t(rank)];
    for (size_t i = 0; i < division.splits.size(); ++i) {
      const auto step = reduce_part(model_case, model, *parallel, batches[i], division.splits[i], rank).value();
      if ((division.by_devices && division.splits.size() == 1) || (parallel->is_of_one() && i == 0))
        fetch_own_sums(communicator, *parallel);
      if (i == 0)
        mine.first_gradient = whole_gradient(communicator, *parallel, model.parameters(), step.gradient_factor);
      if (!step.stands) return;  // a mutant's NaN
      const bool lags = division.lags && parallel->is_of_one();
      ASSERT_TRUE(lags ? parallel->start_update(step, setting.settings()) : parallel->update(step, setting.settings()));
      if (i >= division.shares_after.size()) continue;
      ASSERT_EQ(parallel->divide(division.shares_after[i]), true);
    }
    ASSERT_TRUE(parallel->arrive());
    mine.sent = copies_of(model.parameters());
    ASSERT_TRUE(parallel->send_unrounded());
    mine.parameters = copies_of(model.parameters());
  });
  for (int rank = 1; rank < division.ranks(); ++rank)
    for (size_t i = 0; i < all[0].parameters.size(); ++i)
      if (!all[size_t(rank)].parameters.at(i).equal(all[0].parameters[i]) ||
          !all[size_t(rank)].sent.at(i).equal(all[0].sent[i]))
        return {};
  return all[0];
}

}  // namespace remuda::train::testing
