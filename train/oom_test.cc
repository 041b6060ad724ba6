// A rank runs out of memory in the middle of backward: no rank hangs, nothing of the step is kept, and the repeated
// step, with a smaller part for that rank, equals that of one device.
#include <gtest/gtest.h>
#include <numeric>

#include "base/clock.h"
#include "comm/testing/run_ranks.h"
#include "train/local_step.h"
#include "train/testing/capped_memory.h"
#include "train/testing/data_files.h"
#include "train/testing/parallel.h"

namespace remuda::train {
namespace {

using testing::Budget;
using testing::CappedMemory;
using testing::case_loss;
using testing::make_seeded;
using testing::model_cases;
using testing::ModelCase;
using testing::OnDevice;

constexpr int kStarvedRanks = 3, kStarved = 1, kSamples = 360;
const std::vector<int> kTooMuch{120, 120, 120}, kLess{170, 20, 170};  // samples of each rank

std::vector<uint64_t> part_of(const std::vector<int>& split, int rank) {
  std::vector<uint64_t> indices(split[rank]);
  std::iota(indices.begin(), indices.end(), std::accumulate(split.begin(), split.begin() + rank, 0));
  return indices;
}

class OutOfMemory : public ::testing::TestWithParam<train::testing::ModelCase> {
 protected:
  struct Peaks {
    size_t forward, backward;
  };

  LossSum loss_of(Model& model, const std::vector<uint64_t>& indices) const {
    return case_loss(GetParam(), model, samples_.gather(indices).value());
  }

  std::vector<torch::Tensor> gradient_of_one_device() const {
    const auto model = make_seeded(GetParam(), torch::kFloat);
    const LossSum whole = loss_of(*model, part_of({kSamples}, 0));
    (whole.sum / whole.weight).backward();
    return testing::gradients(*model);
  }

  /// The most memory that forward and backward of the starved rank's part take.
  Peaks peaks_of(const std::vector<int>& split) const {
    const auto model = make_seeded(GetParam(), torch::kFloat);
    loss_of(*model, {0}).sum.backward();  // gradients are there before the first step
    Budget budget;
    const OnDevice device(budget);
    const LossSum loss = loss_of(*model, part_of(split, kStarved));
    const size_t forward = budget.peak;
    loss.sum.backward();
    return {forward, budget.peak};
  }

  /// One step of three ranks, one of which has only `cap` bytes of memory: it fails, and succeeds with other shares.
  void expect_exact_after_failure(const std::vector<torch::Tensor>& expected, size_t cap) const {
    std::vector<std::unique_ptr<Model>> models;
    for (int rank = 0; rank < kStarvedRanks; ++rank) models.push_back(make_seeded(GetParam(), torch::kFloat));
    run_ranks(kStarvedRanks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      Model& model = *models[rank];
      Pace pace(1, steady_clock());
      LocalStep local(model, testing::cpu_ops(), pace, {.padding = GetParam().padding});
      const Batch one = samples_.gather(std::vector<uint64_t>{0}).value();
      const auto parallel = DataParallel::create(communicator, testing::cpu_ops(), model.parameters(),
                                                 [&] { local.run_alone(one); }, {.bucket_bytes = 1024})
                                .value();
      ReducedStep last;
      Budget budget;
      if (rank == kStarved) budget.cap = cap;
      for (const bool fits : {false, true}) {
        {
          const OnDevice device(budget);
          local.run(samples_.gather(part_of(fits ? kLess : kTooMuch, rank)).value(), {}, *parallel);
        }
        EXPECT_EQ(budget.used, 0u) << "an attempt leaves nothing behind";
        const auto step = parallel->reduce();
        ASSERT_TRUE(step) << step.error().message;
        EXPECT_EQ(step->stands, fits);
        EXPECT_EQ(step->totals.first_with(kOutOfMemory), fits ? -1 : kStarved) << "every rank knows who";
        last = *step;
      }
      const auto gradient = testing::whole_gradient(communicator, *parallel, model.parameters(), last.gradient_factor);
      EXPECT_LT(testing::relative_error(gradient, expected), 1e-6);
    });
  }

  const Samples samples_ = testing::make_samples(GetParam(), kSamples);
};

INSTANTIATE_TEST_SUITE_P(Models, OutOfMemory, ::testing::ValuesIn(model_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(OutOfMemory, InBackwardCostsTheStepButNotItsResult) {
  const auto expected = gradient_of_one_device();
  const CappedMemory capped;
  const Peaks peaks = peaks_of(kTooMuch);
  ASSERT_GT(peaks.backward, peaks.forward);
  ASSERT_LT(peaks_of(kLess).backward, peaks.forward);
  for (const double late : {0.02, 0.5, 0.98}) {  // where in backward the memory ends
    SCOPED_TRACE(late);
    const auto room = late * static_cast<double>(peaks.backward - peaks.forward);
    expect_exact_after_failure(expected, peaks.forward + static_cast<size_t>(room));
  }
}

}  // namespace
}  // namespace remuda::train
