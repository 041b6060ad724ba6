// Blocks that are sharded, over CPUs and stand-in accelerators together: exact however batch and state are divided, in
// as little memory as is promised.
#include <future>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "balance/shares.h"
#include "base/clock.h"
#include "base/testing/scratch_folder.h"
#include "comm/testing/run_ranks.h"
#include "train/device/memory_watch.h"
#include "train/local_step.h"
#include "train/testing/script_models.h"
#include "train/testing/sharded.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using testing::configure_standin;
using testing::make_batch;
using testing::make_seeded;
using testing::model_cases;
using testing::ModelCase;

constexpr int kSamplesOfAStep = 24;      ///< samples of a step
constexpr double kAboveRounding = 1e-3;  ///< AdamW's epsilon: it would make whole steps of what is left of a 0
const GroupSettings kRates{0.02, 0.1};

/// How a step is divided.
struct Way {
  std::vector<std::vector<int>> splits;  ///< of each step's batch
  std::vector<double> state_shares;
  std::vector<int> pieces;  ///< in which each rank computes its part
  std::vector<UpdatesOn> updates_on;
  int first_accelerator = 1;  ///< this rank, and every other one from it on, computes on a stand-in
  double clip_norm = 0, average = 0;
  std::function<void()> begins = [] {};               ///< called by the last rank when all is connected
  std::function<void(int step)> before = [](int) {};  ///< a step, and after the last, by the last rank

  int ranks() const { return int(state_shares.size()); }
  torch::Device device(int rank) const {
    return rank % 2 == first_accelerator ? torch::Device(torch::kXPU, c10::DeviceIndex(rank / 2)) : torch::kCPU;
  }
};

Way random_way(int ranks, int steps, std::mt19937& random) {
  const auto weights = [&] {
    std::vector<double> all(size_t(ranks), 0.0);
    for (double& weight : all) weight = double(random() % 4);
    all[random() % all.size()] += 1;
    return all;
  };
  Way way;
  for (int i = 0; i < steps; ++i) way.splits.push_back(balance::apportion(kSamplesOfAStep, weights()));
  way.state_shares = weights();
  for (int rank = 0; rank < ranks; ++rank) {
    way.pieces.push_back(1 + int(random() % 3));
    way.updates_on.push_back(random() % 2 ? UpdatesOn::host : UpdatesOn::device);
  }
  way.first_accelerator = ranks == 1 ? 0 : int(random() % 2);
  return way;
}

Batch part_of(const Batch& batch, const std::vector<int>& split, int rank) {
  int64_t first = 0;
  for (int before = 0; before < rank; ++before) first += split[size_t(before)];
  return testing::narrow(batch, first, split[size_t(rank)]);
}

struct TrainedSharded {
  std::vector<torch::Tensor> parameters;  ///< in the order of the model
  std::vector<torch::Tensor> scores;      ///< of one batch, by each rank
  int dropped = 0;                        ///< steps that were repeated
};

/// By libtorch alone.
std::vector<torch::Tensor> train_one(const ModelCase& model_case, const Way& way) {
  const auto model = make_seeded(model_case, torch::kFloat);
  const auto options = torch::optim::AdamWOptions(kRates.learning_rate).eps(kAboveRounding);
  torch::optim::AdamW optimizer(model->parameters(),
                                torch::optim::AdamWOptions(options).weight_decay(kRates.weight_decay));
  for (size_t step = 0; step < way.splits.size(); ++step) {
    for (const auto& parameter : model->parameters()) parameter.mutable_grad() = torch::zeros_like(parameter);
    const auto loss = testing::case_loss(model_case, *model,
                                         make_batch(model_case, kSamplesOfAStep, 100 + int64_t(step), torch::kFloat));
    (loss.sum / loss.weight).backward();
    if (way.clip_norm > 0) torch::nn::utils::clip_grad_norm_(model->parameters(), way.clip_norm);
    optimizer.step();
  }
  std::vector<torch::Tensor> parameters;
  for (const auto& parameter : model->parameters()) parameters.push_back(parameter.detach().clone());
  return parameters;
}

/// Over ranks, which begin with other values than rank 0. A step in which one of them has run out of memory is made
/// again. Nothing of it where the ranks' steps fail.
TrainedSharded train_sharded(const ModelCase& model_case, const Way& way) {
  std::vector<Batch> batches;
  for (size_t step = 0; step < way.splits.size(); ++step)
    batches.push_back(make_batch(model_case, kSamplesOfAStep, 100 + int64_t(step), torch::kFloat));
  std::vector<std::unique_ptr<Model>> models;
  for (int rank = 0; rank < way.ranks(); ++rank) {
    models.push_back(make_seeded(model_case, torch::kFloat));
    const torch::NoGradGuard no_grad;
    if (rank > 0)
      for (const auto& parameter : models.back()->parameters()) torch::Tensor(parameter).mul_(0.5);
  }
  TrainedSharded trained;
  trained.scores.resize(size_t(way.ranks()));
  run_ranks(way.ranks(), comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto rank = size_t(communicator.rank());
    const bool is_last = communicator.rank() + 1 == way.ranks();
    const DeviceOps ops = DeviceOps::open(way.device(int(rank))).value();
    Model& model = *models[rank];
    FailedBackward failed;
    if (is_last) way.begins();
    const auto parallel = testing::make_sharded(communicator, ops, model,
                                                {.rule = {.kind = UpdateRule::Kind::adamw, .epsilon = kAboveRounding},
                                                 .clip_norm = way.clip_norm,
                                                 .average = way.average,
                                                 .updates_on = way.updates_on[rank],
                                                 .state_shares = way.state_shares});
    for (size_t i = 0; i < batches.size(); ++i) {
      if (is_last) way.before(int(i));
      const Batch part = part_of(batches[i], way.splits[i], int(rank));
      const auto reduced = testing::reduce_sharded(model_case, model, *parallel, part, way.pieces[rank], failed);
      ASSERT_TRUE(reduced) << reduced.error().message;
      const ReducedStep& step = *reduced;
      if (step.totals.any_status() & kOutOfMemory) {
        if (rank == 0) ++trained.dropped;
        --i;
        continue;
      }
      if (!step.stands) return;  // NaN, where a wait was left out
      ASSERT_TRUE(parallel->update(step, {kRates}));
    }
    if (is_last) way.before(int(batches.size()));
    {
      const torch::NoGradGuard no_grad;
      trained.scores[rank] = model.forward(batches[0].input.to(ops.device())).to(torch::kCPU);
      ASSERT_TRUE(parallel->blocks()->finish());
    }
    auto values = testing::whole_values(communicator, *parallel, model);
    if (rank == 0) trained.parameters = std::move(values);
  });
  return trained;
}

class ShardedBlocksOn : public ::testing::TestWithParam<ModelCase> {
 protected:
  ~ShardedBlocksOn() override {
    for (int device = 0; device < testing::kStandinDevices; ++device) configure_standin(device, {});
  }
};

INSTANTIATE_TEST_SUITE_P(Models, ShardedBlocksOn, ::testing::ValuesIn(model_cases()),
                         [](const auto& info) { return info.param.name; });

// 1e-6 relative, float32: see exactness_test.cc. Of two steps, the second of which fetches what the first has updated.
TEST_P(ShardedBlocksOn, AnyDivisionTrainsWhatOneDeviceDoes) {
  for (int device = 0; device < testing::kStandinDevices; ++device)
    configure_standin(device, {.random_delay_s = 1e-4, .seed = unsigned(device)});
  std::mt19937 random(41);
  for (const double clip_norm : {0.0, 0.01})
    for (int ranks = 1; ranks <= 4; ++ranks) {
      Way way = random_way(ranks, 2, random);
      way.clip_norm = clip_norm;
      SCOPED_TRACE(::testing::PrintToString(way.splits) + ::testing::PrintToString(way.state_shares) +
                   ::testing::PrintToString(way.pieces));
      const TrainedSharded trained = train_sharded(GetParam(), way);
      ASSERT_FALSE(trained.parameters.empty()) << "a step failed";
      EXPECT_LT(testing::relative_error(trained.parameters, train_one(GetParam(), way)), 1e-6);
      for (const torch::Tensor& scores : trained.scores)
        EXPECT_LT(testing::relative_error({scores}, {trained.scores[0]}), 1e-6) << "all compute with the same";
    }
}

// Wherever in a step that is: in a forward or a backward pass, with blocks fetched for it and gradients on their way.
TEST_P(ShardedBlocksOn, AStepInWhichMemoryEndsIsDroppedWholeAndCanBeRepeated) {
  std::mt19937 random(43);
  Way way = random_way(2, 2, random);
  way.splits = {{10, 14}, {12, 12}};
  way.state_shares = {1, 2};
  way.pieces = {1, 2};
  way.first_accelerator = 1;
  const TrainedSharded roomy = train_sharded(GetParam(), way);
  ASSERT_FALSE(roomy.parameters.empty());
  int dropped = 0;
  for (size_t room = 0;; room += 1024 + room / 4) {
    bool tight = true;
    way.before = [&](int step) {
      const bool ends = step == 1 && std::exchange(tight, step != 1);
      configure_standin(0, {.memory_cap = ends ? testing::standin_memory(0) + room : SIZE_MAX});
    };
    const TrainedSharded trained = train_sharded(GetParam(), way);
    EXPECT_TRUE(testing::same_bits(trained.parameters, roomy.parameters)) << "with room for " << room << " bytes";
    dropped += trained.dropped;
    if (trained.dropped == 0) break;
  }
  EXPECT_GT(dropped, 4);
}

/// Wide layers, so that all else is small beside their parameters.
ModelCase wide_mlp(int layers) {
  return {.name = "wide",
          .spec = {.name = "mlp", .hidden = std::vector<int>(size_t(layers), 256)},
          .input = {1, 16, 16, 5, 0}};
}

struct Held {
  double at_rest = 0, peak = 0;  ///< bytes, of one device
};

/// What ranks on devices of their own hold of a model, between two steps and in one.
std::vector<Held> held(const ModelCase& model_case, const std::vector<double>& state_shares) {
  const Batch batch = make_batch(model_case, 2, 100, torch::kFloat);
  std::vector<std::unique_ptr<Model>> models;
  for (size_t rank = 0; rank < state_shares.size(); ++rank) models.push_back(make_seeded(model_case, torch::kFloat));
  std::vector<Held> all(state_shares.size());
  run_ranks(int(state_shares.size()), comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    const DeviceOps ops = DeviceOps::open({torch::kXPU, c10::DeviceIndex(rank)}).value();
    FailedBackward failed;
    const auto before = double(testing::standin_memory(rank));
    const auto parallel =
        testing::make_sharded(communicator, ops, *models[size_t(rank)],
                              {.rule = {.kind = UpdateRule::Kind::adamw}, .state_shares = state_shares});
    Held& mine = all[size_t(rank)];
    for (int step = 0; step < 2; ++step) {
      const MemoryWatch watch(ops.device());
      const auto reduced =
          testing::reduce_sharded(model_case, *models[size_t(rank)], *parallel, batch, 1, failed).value();
      ASSERT_TRUE(parallel->update(reduced, {kRates}));
      mine.peak = std::max(mine.peak, watch.use()->peak - before);
    }
    mine.at_rest = double(testing::standin_memory(rank)) - before;
  });
  return all;
}

// AdamW with whole parameters: values, gradients, two values of state, and in so small a model as much room for
// updates: 20 bytes each. A step takes two blocks more, and what libtorch is computing: the gradient of one parameter,
// and activations.
TEST(ShardedBlocksHold, TheirPartAtRestAndTwoBlocksMoreAtMost) {
  constexpr int kLayers = 8;
  constexpr double kLayer = 256 * 256 + 256, kState = 20 * (kLayers * kLayer + 5 * 256 + 5);
  for (const std::vector<double>& shares : {std::vector<double>{1, 1, 1}, {3, 1}, {1}}) {
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    const std::vector<Held> all = held(wide_mlp(kLayers), shares);
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      SCOPED_TRACE(::testing::PrintToString(shares) + " rank " + std::to_string(rank));
      EXPECT_LT(all[rank].at_rest, (shares[rank] / sum + 0.05) * kState);
      EXPECT_GT(all[rank].at_rest, (shares[rank] / sum - 0.05) * kState);
      EXPECT_LT(all[rank].peak - all[rank].at_rest, 2 * 8 * kLayer + 4 * kLayer + 100'000);
    }
  }
}

// In 16 bits a device keeps, while it evaluates, casts of no more than the blocks that are there.
TEST(ShardedBlocksHold, TwoBlocksInAnEvaluationIn16BitsToo) {
  constexpr int kLayers = 16, kWidth = 256;
  constexpr double kLayer = kWidth * kWidth;
  const ScratchFolder folder;
  testing::write_sequential(folder.path("model.pt"), std::vector(kLayers, testing::ScriptLayer{kWidth, kWidth}));
  run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const DeviceOps ops = DeviceOps::open({torch::kXPU, 0}).value();
    const auto model = make_model({.path = folder.path("model.pt")}, {}).value();
    const auto parallel = testing::make_sharded(communicator, ops, *model, {});
    const auto input = torch::ones({2, kWidth}, ops.device());
    const torch::NoGradGuard no_grad;
    const MemoryWatch watch(ops.device());
    {
      const Autocast autocast(ops.device(), torch::kBFloat16);
      EXPECT_EQ(model->forward(input).scalar_type(), torch::kBFloat16);
    }
    ASSERT_TRUE(parallel->blocks()->finish());
    EXPECT_LT(watch.use()->peak - watch.use()->before, 2 * (4 + 2) * kLayer + 100'000);
  });
}

/// A pass is given up of whose blocks the second one is still on its way, to memory that is free from then on.
TEST(ShardedBlocksOfAPass, ThatIsGivenUpAreThereBeforeTheirMemoryIsUsedAgain) {
  configure_standin(0, {.lazy_copies = true});
  run_ranks(1, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const torch::NoGradGuard no_grad;
    const DeviceOps ops = DeviceOps::open({torch::kXPU, 0}).value();
    const auto model = make_seeded(model_cases()[0], torch::kFloat);
    const auto parallel = testing::make_sharded(communicator, ops, *model, {});
    ShardedBlocks& blocks = *parallel->blocks();
    blocks.before_forward(0);
    ASSERT_TRUE(blocks.finish());
    const auto next = torch::zeros({int64_t(blocks.parts().block(1).extent())}, ops.device());
    ASSERT_TRUE(ops.wait(ops.copy(torch::zeros({1}), torch::zeros({1}, ops.device()), {}), "all copies", 10));
    EXPECT_TRUE(next.to(torch::kCPU).eq(0).all().item<bool>());
  });
  configure_standin(0, {});
}

/// What the second step of rank 0 ends with where rank 1 does not make all of it.
enum class When { before_it, after_forward };
enum class How { leaves, is_silent };

Error error_without_the_other(When when, How how) {
  const ModelCase model_case = model_cases()[0];
  const Batch batch = make_batch(model_case, 4, 100, torch::kFloat);
  std::vector<std::unique_ptr<Model>> models;
  for (int rank = 0; rank < 2; ++rank) models.push_back(make_seeded(model_case, torch::kFloat));
  Error error;
  std::promise<void> seen;
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const bool ends = communicator.rank() == 1;
    const DeviceOps ops = DeviceOps::open(ends ? torch::kCPU : torch::Device(torch::kXPU, 0)).value();
    Model& model = *models[size_t(communicator.rank())];
    Pace pace(1, steady_clock());
    LocalStep local(model, ops, pace, {});
    const auto parallel = testing::make_sharded(communicator, ops, model, {});
    local.run(batch, {}, *parallel);
    ASSERT_TRUE(parallel->reduce());
    if (how == How::is_silent) parallel->set_timeout(0.3);
    if (ends) {
      torch::Tensor scores;
      if (when == When::after_forward) scores = model.forward(batch.input);
      if (how == How::is_silent) seen.get_future().wait_for(std::chrono::seconds(30));
      return;
    }
    local.run(batch, {}, *parallel);
    const auto step = parallel->reduce();
    seen.set_value();
    ASSERT_FALSE(step);
    error = step.error();
  });
  return error;
}

TEST(ShardedBlocksWithout, ARankEndTheStepWithAnErrorThatNamesIt) {
  for (const When when : {When::before_it, When::after_forward})
    for (const How how : {How::leaves, How::is_silent}) {
      const Error error = error_without_the_other(when, how);
      EXPECT_EQ(error.kind, ErrorKind::lost_peer);
      EXPECT_EQ(error.peer, 1);
      EXPECT_NE(error.message.find("rank 1"), std::string::npos) << error.message;
    }
}

// The disk may be slower than any step.
TEST(ShardedBlocksAreLent, AsLongAsRank0NeedsForWritingThem) {
  const ModelCase model_case = model_cases()[0];
  std::vector<std::unique_ptr<Model>> models;
  for (int rank = 0; rank < 2; ++rank) models.push_back(make_seeded(model_case, torch::kFloat));
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const bool writes = communicator.rank() == 0;
    const DeviceOps ops = DeviceOps::open(torch::kCPU).value();
    Model& model = *models[size_t(communicator.rank())];
    const auto parallel = testing::make_sharded(communicator, ops, model, {});
    ASSERT_TRUE(communicator.barrier(77));
    if (writes)
      steady_clock().sleep_s(0.3);
    else
      parallel->set_timeout(0.1);
    EXPECT_EQ(testing::whole_values(communicator, *parallel, model).size(), writes ? model.parameters().size() : 0);
  });
}

}  // namespace
}  // namespace remuda::train
