// The engine over CPUs and stand-in accelerators together: exact however the batch and the state are divided, and only
// as long as it waits wherever it does.
#include <gtest/gtest.h>
#include <random>

#include "balance/shares.h"
#include "comm/testing/run_ranks.h"
#include "train/device/collectives.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/library.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using testing::configure_standin;
using testing::make_batch;
using testing::make_seeded;
using testing::model_cases;
using testing::ModelCase;
using testing::StandinSettings;
using testing::WaitKind;
constexpr int kBatch = 24;
constexpr double kEpsilon = 1e-3;

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
  int first_accelerator = 1;  ///< this rank, and every other one from it on, computes on a stand-in; the others on CPUs
  double bucket_bytes = 4096;
  std::vector<UpdatesOn> updates_on;     ///< of each rank
  bool by_devices = false;               ///< each computes on a stand-in of its own, and buckets go between these
  std::function<void()> begins = [] {};  ///< called by the last rank when all is connected

  int ranks() const { return int(state_shares.size()); }
  torch::Device device(int rank) const {
    if (by_devices) return {torch::kXPU, c10::DeviceIndex(ranks() - 1 - rank)};
    return rank % 2 == first_accelerator ? torch::Device(torch::kXPU, c10::DeviceIndex(rank / 2)) : torch::kCPU;
  }
};

/// Shares of 0 included.
Division random_division(int ranks, int steps, std::mt19937& random) {
  const auto weights = [&] {
    std::vector<double> all(size_t(ranks), 0.0);
    for (double& weight : all) weight = double(random() % 4);
    all[random() % all.size()] += 1;
    return all;
  };
  Division division;
  for (int i = 0; i < steps; ++i) division.splits.push_back(balance::apportion(kBatch, weights()));
  division.state_shares = weights();
  for (int rank = 0; rank < ranks; ++rank)
    division.updates_on.push_back(random() % 2 ? UpdatesOn::host : UpdatesOn::device);
  division.first_accelerator = ranks == 1 ? 0 : int(random() % 2);
  if (random() % 2) division.bucket_bytes = 1;
  return division;
}

struct Trained {
  std::vector<torch::Tensor> first_gradient;
  std::vector<torch::Tensor> sent;        ///< the parameters that a further step would compute with
  std::vector<torch::Tensor> parameters;  ///< unrounded, in the order of the model
};

std::vector<torch::Tensor> copies(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach().to(torch::kCPU).clone());
  return all;
}

/// By libtorch alone: one device, its own optimizers and its own clipping.
Trained train_alone(const ModelCase& model_case, const Setting& setting, int steps) {
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
    const auto loss = testing::case_loss(model_case, *model, make_batch(model_case, kBatch, 100 + step, torch::kFloat));
    (loss.sum / loss.weight).backward();
    if (setting.clip_norm > 0) torch::nn::utils::clip_grad_norm_(parameters, setting.clip_norm);
    if (step == 0) trained.first_gradient = testing::gradients(*model);
    optimizer.step();
  }
  trained.parameters = copies(parameters);
  return trained;
}

/// One rank's part of a step.
Result<ReducedStep> reduce_part(const ModelCase& model_case, Model& model, DataParallel& parallel, const Batch& batch,
                                const std::vector<int>& split, int rank) {
  int64_t first = 0;
  for (int before = 0; before < rank; ++before) first += split[size_t(before)];
  LossSum loss;
  if (split[size_t(rank)] > 0) {
    const Batch mine = testing::narrow(batch, first, split[size_t(rank)]);
    loss = testing::case_loss(model_case, model,
                              {mine.input.to(parallel.ops().device(), /*non_blocking=*/true), mine.target});
  }
  parallel.begin({.weight = loss.weight});
  if (loss.sum.defined()) loss.sum.backward();
  return parallel.reduce();
}

/// Trained over ranks as `division` says; checks that all end with the same bits. Rank 0 is not the only one whose
/// initial values would be right if the others did not take them over.
Trained train_divided(const ModelCase& model_case, const Setting& setting, const Division& division) {
  std::vector<Batch> batches;
  std::vector<std::unique_ptr<Model>> models;
  for (size_t step = 0; step < division.splits.size(); ++step)
    batches.push_back(make_batch(model_case, kBatch, 100 + int64_t(step), torch::kFloat));
  for (int rank = 0; rank < division.ranks(); ++rank) {
    models.push_back(make_seeded(model_case, torch::kFloat));
    const torch::NoGradGuard no_grad;
    if (rank > 0)
      for (const auto& parameter : models.back()->parameters()) torch::Tensor(parameter).mul_(0.5);
    models.back()->to(division.device(rank));
  }
  std::vector<Trained> all(size_t(division.ranks()));
  run_ranks(division.ranks(), comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    Model& model = *models[size_t(rank)];
    const DeviceOps ops = DeviceOps::open(division.device(rank)).value();
    comm::OpenedCollectives opened;
    if (division.by_devices) {
      opened = open_collectives(communicator, ops, {.largest_bytes = 1 << 10}).value();
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
                                  .sent_as = setting.sent_as};
    const auto parallel = DataParallel::create(communicator, ops, model.parameters(),
                                               testing::trial(model_case, model, on_device), options)
                              .value();
    Trained& mine = all[size_t(rank)];
    for (size_t i = 0; i < division.splits.size(); ++i) {
      const auto step = reduce_part(model_case, model, *parallel, batches[i], division.splits[i], rank).value();
      if (division.by_devices && division.splits.size() == 1) testing::fetch_own_sums(communicator, *parallel);
      if (i == 0)
        mine.first_gradient =
            testing::whole_gradient(communicator, *parallel, model.parameters(), step.gradient_factor);
      if (!step.stands) return;  // a mutant's NaN
      ASSERT_TRUE(parallel->update(step, setting.settings()));
    }
    mine.sent = copies(model.parameters());
    ASSERT_TRUE(parallel->send_unrounded());
    mine.parameters = copies(model.parameters());
  });
  for (int rank = 1; rank < division.ranks(); ++rank)
    for (size_t i = 0; i < all[0].parameters.size(); ++i)
      if (!all[size_t(rank)].parameters.at(i).equal(all[0].parameters[i]) ||
          !all[size_t(rank)].sent.at(i).equal(all[0].sent[i]))
        return {};
  return all[0];
}

class DeviceExactness : public ::testing::TestWithParam<ModelCase> {
 protected:
  ~DeviceExactness() override {
    for (int device = 0; device < testing::kStandinDevices; ++device) configure_standin(device, {});
  }
};

INSTANTIATE_TEST_SUITE_P(Models, DeviceExactness, ::testing::ValuesIn(model_cases()),
                         [](const auto& info) { return info.param.name; });

// 1e-6 relative, float32: see exactness_test.cc. Parameters after one step, and with an epsilon above the gradients'
// rounding: AdamW would make a whole step of what is left of a gradient of 0.
TEST_P(DeviceExactness, GradientAndUpdateOfAnyDivisionAreThoseOfOneDevice) {
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.random_delay_s = 2e-4, .seed = unsigned(device)});
  std::mt19937 random(17);
  for (const bool groups : {false, true})
    for (const double clip_norm : {0.0, 0.01}) {
      const Setting setting{{.kind = UpdateRule::Kind::adamw, .epsilon = kEpsilon}, groups, clip_norm};
      const Trained expected = train_alone(GetParam(), setting, 1);
      for (int ranks = 1; ranks <= 5; ++ranks) {
        const Division division = random_division(ranks, 1, random);
        SCOPED_TRACE(::testing::PrintToString(division.splits) + ::testing::PrintToString(division.state_shares));
        const Trained trained = train_divided(GetParam(), setting, division);
        ASSERT_FALSE(trained.parameters.empty()) << "the ranks differ, or the step failed";
        EXPECT_LT(testing::relative_error(trained.first_gradient, expected.first_gradient), 1e-6);
        EXPECT_LT(testing::relative_error(trained.parameters, expected.parameters), 1e-6);
      }
    }
}

// What is unrounded is as exact as without rounding; what all compute with is its rounding, and no rank's is another.
TEST_P(DeviceExactness, ParametersThatAreSentRoundedAreKeptUnroundedByTheirOwners) {
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.random_delay_s = 2e-4, .seed = unsigned(device)});
  std::mt19937 random(23);
  const Setting exact{{.kind = UpdateRule::Kind::adamw, .epsilon = kEpsilon}, true};
  const Trained expected = train_alone(GetParam(), exact, 1);
  for (const torch::ScalarType type : {torch::kBFloat16, torch::kHalf})
    for (int ranks = 1; ranks <= 4; ++ranks) {
      Setting setting = exact;
      setting.sent_as = type;
      const Trained trained = train_divided(GetParam(), setting, random_division(ranks, 1, random));
      ASSERT_FALSE(trained.parameters.empty()) << "the ranks differ, or the step failed";
      EXPECT_LT(testing::relative_error(trained.parameters, expected.parameters), 1e-6);
      for (size_t i = 0; i < trained.sent.size(); ++i)
        EXPECT_TRUE(trained.sent[i].equal(trained.parameters[i].to(type).to(torch::kFloat)));
    }
}

// By the library of the devices' maker, which adds up in another order.
TEST_P(DeviceExactness, BucketsMayGoFromDeviceToDevice) {
  testing::use_standin_library();
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.random_delay_s = 1e-4, .seed = unsigned(device)});
  std::mt19937 random(29);
  Setting setting{{.kind = UpdateRule::Kind::adamw, .epsilon = kEpsilon}, true, 0.01};
  const Trained expected = train_alone(GetParam(), setting, 1);
  for (int ranks = 2; ranks <= 3; ++ranks) {
    setting.sent_as = ranks == 2 ? torch::kFloat : torch::kBFloat16;
    Division division = random_division(ranks, 1, random);
    division.by_devices = true;
    SCOPED_TRACE(::testing::PrintToString(division.splits) + ::testing::PrintToString(division.state_shares));
    const int calls = comm::standin_library_calls();
    const Trained trained = train_divided(GetParam(), setting, division);
    ASSERT_FALSE(trained.parameters.empty()) << "the ranks differ, or the step failed";
    EXPECT_GT(comm::standin_library_calls(), calls);
    EXPECT_LT(testing::relative_error(trained.first_gradient, expected.first_gradient), 1e-6);
    EXPECT_LT(testing::relative_error(trained.parameters, expected.parameters), 1e-6);
    for (size_t i = 0; i < trained.sent.size(); ++i)
      EXPECT_TRUE(trained.sent[i].equal(trained.parameters[i].to(setting.sent_as).to(torch::kFloat)));
  }
}

/// Runs three steps of two ranks, CPU and stand-in, with one of the waits of this kind ignored. The stream that is
/// waited for does nothing that nobody waits for, so that no work is done in time by chance.
class Waits {
 public:
  Waits(WaitKind kind, torch::ScalarType sent_as, UpdatesOn updates_on, bool by_devices = false)
      : kind_(kind), sent_as_(sent_as), updates_on_(updates_on), by_devices_(by_devices) {
    if (by_devices) testing::use_standin_library();
    const bool for_compute = kind == WaitKind::copies_for_compute;
    configure_standin(0, {.lazy_compute = for_compute, .lazy_copies = !for_compute});
  }
  ~Waits() { configure_standin(0, {}); }

  /// The parameters; empty where the ranks ended with different ones, or failed.
  std::vector<torch::Tensor> train(int ignored) {
    const Setting setting{{.momentum = 0.9}, false, 0, sent_as_};
    Division division{{{10, 14}, {12, 12}, {14, 10}}, {1, 1}};
    division.updates_on = {updates_on_, updates_on_};
    division.by_devices = by_devices_;
    division.begins = [this, ignored] { testing::watch_waits(0, kind_, ignored); };
    auto parameters = train_divided(model_cases()[0], setting, division).parameters;
    count = testing::watch_waits(0, kind_, -1);
    return parameters;
  }

  int count = 0;

 private:
  WaitKind kind_;
  torch::ScalarType sent_as_;
  UpdatesOn updates_on_;
  bool by_devices_;
};

bool same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].equal(b[i])) return false;
  return true;
}

class EveryWait : public ::testing::TestWithParam<std::tuple<WaitKind, torch::ScalarType, UpdatesOn>> {};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryWait,
                         ::testing::Combine(::testing::Values(WaitKind::copies_for_compute,
                                                              WaitKind::compute_for_copies, WaitKind::host_for_copies),
                                            ::testing::Values(torch::kFloat, torch::kBFloat16),
                                            ::testing::Values(UpdatesOn::device, UpdatesOn::host)));

TEST_P(EveryWait, IsNeeded) {
  const auto [kind, sent_as, updates_on] = GetParam();
  Waits waits(kind, sent_as, updates_on);
  const auto expected = waits.train(-1);
  ASSERT_FALSE(expected.empty());
  EXPECT_TRUE(same(waits.train(-1), expected)) << "repeatable";
  const int count = waits.count;
  ASSERT_GE(count, 3) << "one in each step at least";
  for (int ignored = 0; ignored < count; ++ignored)
    EXPECT_FALSE(same(waits.train(ignored), expected)) << "wait " << ignored << " of " << count;
}

/// Of each step that of the last bucket, behind which the host gives the device nothing more to do: whether one before
/// it matters is a race.
TEST(EveryWaitByDevices, ForTheLastGradientsIsNeeded) {
  constexpr int kBuckets = 2;
  Waits waits(WaitKind::copies_for_compute, torch::kFloat, UpdatesOn::device, true);
  const auto expected = waits.train(-1);
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(waits.count, 3 * (kBuckets + 1)) << "for each bucket of a step, and once for what is gathered";
  for (int ignored = kBuckets - 1; ignored < 3 * (kBuckets + 1); ignored += kBuckets + 1)
    EXPECT_FALSE(same(waits.train(ignored), expected)) << "wait " << ignored;
}

}  // namespace
}  // namespace remuda::train
