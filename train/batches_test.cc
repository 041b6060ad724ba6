#include "train/batches.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <optional>

#include "base/testing/scratch_folder.h"
#include "train/testing/data_files.h"

namespace remuda::train {
namespace {

constexpr int kSetSize = 50, kStepSize = 16, kPasses = 3;

/// Images that are mirrored and moved at random, so that it shows when one is seen in another way.
class BatchesTest : public ::testing::Test {
 protected:
  BatchesTest() {
    testing::ModelCase model_case;
    model_case.input = {1, 4, 5, testing::kLabels, 0};
    job::DataSpec spec = testing::write_samples(folder_, model_case, kSetSize);
    spec.flip = job::Switch::on;
    spec.crop = 2;
    samples_.emplace(Samples::open(spec, data::Split::train, {}, 9).value());
  }

  /// The input of a whole run, step by step, as the ranks of this split have it together. In every second step, each
  /// rank has the share of the next one.
  std::vector<torch::Tensor> steps(std::vector<int> shares, int workers) {
    std::vector<std::unique_ptr<Batches>> ranks;
    for (int rank = 0; rank < int(shares.size()); ++rank)
      ranks.push_back(std::make_unique<Batches>(
          *samples_,
          Batches::Options{
              .seed = 9, .global_batch = kStepSize, .rank = rank, .end = kPasses * kSetSize, .workers = workers}));
    std::vector<torch::Tensor> inputs;
    for (uint64_t position = 0; position < kPasses * kSetSize; position += uint64_t(ranks[0]->step_size(position))) {
      std::vector<torch::Tensor> parts;
      for (const auto& rank : ranks) {
        const Batch batch = rank->take(position, shares).value();
        EXPECT_EQ(batch.input.size(0), batch.target.size(0));
        parts.push_back(batch.input);
      }
      inputs.push_back(torch::cat(parts));
      std::rotate(shares.begin(), shares.begin() + 1, shares.end());
    }
    return inputs;
  }

  ScratchFolder folder_;
  std::optional<Samples> samples_;
};

TEST_F(BatchesTest, HaveTheSameBitsForAnyNumberOfRanksAndWorkers) {
  const auto expected = steps({kStepSize}, 0);
  ASSERT_EQ(expected.size(), 12u) << "the fourth step of an epoch has two samples";
  EXPECT_EQ(expected[3].size(0), 2);
  for (const std::vector<int>& shares : {std::vector{16}, {11, 5}, {0, 9, 7}})
    for (const int workers : {0, 1, 3}) {
      const auto found = steps(shares, workers);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(found[i].equal(expected[i])) << "step " << i << ", " << shares.size() << " ranks, " << workers;
    }
}

TEST_F(BatchesTest, PartsAreWholeUnitsUpToTheEndOfAnEpoch) {
  const Batches batches(*samples_, {.global_batch = 48, .end = kSetSize, .unit = 8});
  EXPECT_EQ(batches.parts(0, {32, 16}), (std::vector{32, 16}));
  const Batches many(*samples_, {.global_batch = 32, .end = kSetSize, .unit = 8});
  EXPECT_EQ(many.parts(32, {16, 16}), (std::vector{16, 2})) << "18 samples are left";
  EXPECT_EQ(many.parts(32, {8, 24}), (std::vector{8, 10}));
}

TEST_F(BatchesTest, AnEpochHasEachSampleOnceAndSeesItInAnotherWay) {
  const auto all = steps({kStepSize}, 0);
  const auto epoch = [&](size_t first) {
    return torch::cat({all[first], all[first + 1], all[first + 2], all[first + 3]});
  };
  EXPECT_EQ(epoch(0).size(0), kSetSize);
  const auto sums = [](const torch::Tensor& images) { return std::get<0>(images.flatten(1).sum(1).sort()); };
  EXPECT_FALSE(sums(epoch(0)).allclose(sums(epoch(4)), 0, 1e-3)) << "what is moved out of an image is another part";
}

TEST(LoaderThreads, AreForImageFilesUnlessAskedFor) {
  EXPECT_EQ(loader_threads({.format = job::DataFormat::idx}, true), 0);
  EXPECT_EQ(loader_threads({.format = job::DataFormat::tokens}, false), 1) << "the device has no core of the host";
  EXPECT_GE(loader_threads({.format = job::DataFormat::images}, true), 1);
  EXPECT_GE(loader_threads({.transform = "transform.pt"}, true), 1);
  EXPECT_EQ(loader_threads({.format = job::DataFormat::images, .workers = 0}, false), 0);
  EXPECT_EQ(loader_threads({.format = job::DataFormat::idx, .workers = 5}, true), 5);
}

}  // namespace
}  // namespace remuda::train
