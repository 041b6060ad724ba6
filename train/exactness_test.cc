// remuda's central claim: however a batch is split over ranks, training gives the result of training on one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "balance/shares.h"
#include "comm/testing/run_ranks.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

using testing::case_loss;
using testing::cpu_ops;
using testing::make_batch;
using testing::make_seeded;
using testing::model_cases;
using testing::ModelCase;
using testing::whole_gradient;
using Transport = comm::ConnectOptions::Transport;

std::vector<std::unique_ptr<Model>> replicas(const train::testing::ModelCase& model_case, int ranks,
                                             torch::ScalarType type) {
  std::vector<std::unique_ptr<Model>> models;
  for (int rank = 0; rank < ranks; ++rank) models.push_back(make_seeded(model_case, type));
  return models;
}

/// Uneven on purpose: some ranks may get nothing.
std::vector<int> random_split(int total, int ranks, std::mt19937& random) {
  std::vector<double> weights(ranks);
  for (auto& weight : weights) weight = double(random() % 10);
  return balance::apportion(total, weights);
}

int64_t start_of(const std::vector<int>& split, int rank) {
  int64_t start = 0;
  for (int r = 0; r < rank; ++r) start += split[r];
  return start;
}

/// One rank's part of one step, as a user of DataParallel would write it.
ReducedStep reduce_part(const train::testing::ModelCase& model_case, Model& model, DataParallel& parallel,
                        const Batch& batch, const std::vector<int>& split, int rank) {
  StepReport report;
  LossSum loss;
  if (split[rank] > 0) {
    const auto watch = parallel.watch_parameters();
    loss = case_loss(model_case, model, testing::narrow(batch, start_of(split, rank), split[rank]));
    report.weight = loss.weight;
    report.loss_sum = loss.sum.item<double>();
  }
  parallel.begin(report);
  if (split[rank] > 0) loss.sum.backward();
  return parallel.reduce().value();
}

class Exactness : public ::testing::TestWithParam<train::testing::ModelCase> {};

INSTANTIATE_TEST_SUITE_P(Models, Exactness, ::testing::ValuesIn(model_cases()),
                         [](const auto& info) { return info.param.name; });

// 1e-6: float32 has 6e-8 of rounding per operation; sums over a batch in another order differ by a few of these.
TEST_P(Exactness, GradientOfAnyUnevenSplitIsThatOfOneDevice) {
  constexpr int kBatch = 48;
  const auto& model_case = GetParam();
  const Batch batch = make_batch(model_case, kBatch, 3, torch::kFloat);
  const auto single = make_seeded(model_case, torch::kFloat);
  const auto whole = case_loss(model_case, *single, batch);
  (whole.sum / whole.weight).backward();
  const auto expected = testing::gradients(*single);

  std::mt19937 random(11);
  for (int ranks = 2; ranks <= 4; ++ranks) {
    const std::vector splits{random_split(kBatch, ranks, random), random_split(kBatch, ranks, random),
                             random_split(kBatch, ranks, random)};
    const auto models = replicas(model_case, ranks, torch::kFloat);
    run_ranks(ranks, Transport::shared_memory, [&](comm::Communicator& communicator) {
      Model& model = *models[communicator.rank()];
      const auto parallel = DataParallel::create(communicator, cpu_ops(), model.parameters(),
                                                 testing::trial(model_case, model, batch), {.bucket_bytes = 4096});
      ASSERT_TRUE(parallel) << parallel.error().message;
      EXPECT_GT((*parallel)->flat().layout().buckets(), 1u);
      for (const auto& split : splits) {
        const auto step = reduce_part(model_case, model, **parallel, batch, split, communicator.rank());
        EXPECT_TRUE(step.stands);
        EXPECT_EQ(step.totals.weight, whole.weight);
        EXPECT_LT(testing::relative_error(
                      whole_gradient(communicator, **parallel, model.parameters(), step.gradient_factor), expected),
                  1e-6)
            << ::testing::PrintToString(split);
      }
    });
  }
}

struct Curve {
  std::vector<double> losses;
  std::vector<torch::Tensor> parameters;  ///< flat, of each rank
};

enum class Update { waits, starts };

Curve train(const train::testing::ModelCase& model_case, int ranks, int steps, Transport transport,
            Update how = Update::waits, std::optional<torch::ScalarType> sent_as = {}) {
  constexpr int kBatch = 24;
  const auto models = replicas(model_case, ranks, torch::kDouble);
  std::vector<Batch> batches;
  for (int i = 0; i < 8; ++i) batches.push_back(make_batch(model_case, kBatch, 100 + i, torch::kDouble));
  Curve curve;
  curve.parameters.resize(ranks);
  run_ranks(ranks, transport, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    Model& model = *models[rank];
    const auto parallel =
        DataParallel::create(communicator, cpu_ops(), model.parameters(), testing::trial(model_case, model, batches[0]),
                             {.bucket_bytes = 4096, .rule = {.momentum = 0.9}, .sent_as = sent_as})
            .value();
    std::mt19937 random(5);
    for (int i = 0; i < steps; ++i) {
      const auto split = random_split(kBatch, ranks, random);
      const auto step = reduce_part(model_case, model, *parallel, batches[size_t(i) % batches.size()], split, rank);
      ASSERT_TRUE(how == Update::waits ? parallel->update(step, {{0.05, 0}})
                                       : parallel->start_update(step, {{0.05, 0}}));
      if (rank == 0) curve.losses.push_back(step.totals.loss_sum / step.totals.weight);
    }
    ASSERT_TRUE(parallel->check_parameters(steps));
    curve.parameters[rank] = parallel->flat().values().host().clone();
  });
  return curve;
}

// float64, so that the tolerance is about the method and not about rounding that training amplifies.
TEST_P(Exactness, TwoHundredStepsGiveTheSameCurveWithOneTwoAndThreeRanks) {
  const auto one = train(GetParam(), 1, 200, Transport::automatic);
  EXPECT_LT(one.losses.back(), 0.9 * one.losses.front()) << "it trains";
  for (const int ranks : {2, 3}) {
    const auto many = train(GetParam(), ranks, 200, Transport::shared_memory);
    for (size_t i = 0; i < one.losses.size(); ++i) ASSERT_NEAR(many.losses[i], one.losses[i], 1e-4) << "step " << i;
    for (int rank = 1; rank < ranks; ++rank)
      EXPECT_TRUE(many.parameters[rank].equal(many.parameters[0])) << "rank " << rank << " is bit-identical";
  }
}

TEST_P(Exactness, ParametersThatArriveUnderTheNextPassAreTheSameBits) {
  for (const auto sent_as : {torch::kDouble, torch::kBFloat16}) {
    const auto waited = train(GetParam(), 3, 20, Transport::tcp, Update::waits, sent_as);
    const auto started = train(GetParam(), 3, 20, Transport::tcp, Update::starts, sent_as);
    EXPECT_EQ(started.losses, waited.losses);
    for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(started.parameters[rank].equal(waited.parameters[rank])) << rank;
  }
}

TEST(Exactness, TransportsGiveTheSameBits) {
  const auto model_case = model_cases()[0];
  const auto shared = train(model_case, 3, 20, Transport::shared_memory);
  const auto tcp = train(model_case, 3, 20, Transport::tcp);
  EXPECT_TRUE(shared.parameters[0].equal(tcp.parameters[0]));
  EXPECT_EQ(shared.losses, tcp.losses);
}

}  // namespace
}  // namespace remuda::train
