#include "train/batch_feed.h"

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <thread>

#include "base/testing/scratch_folder.h"
#include "comm/testing/run_ranks.h"
#include "train/batches.h"
#include "train/testing/data_files.h"

namespace remuda::train {
namespace {

using ::testing::HasSubstr;

constexpr int kFedImages = 50, kFedStep = 16;
constexpr uint64_t kSeed = 9;
constexpr uint32_t kAfterwards = 1;

/// Images that are mirrored and moved at random, so that it shows when one is seen in another way.
class BatchFeedTest : public ::testing::Test {
 protected:
  BatchFeedTest() {
    testing::ModelCase model_case;
    model_case.input = {1, 4, 5, testing::kLabels, 0};
    spec_ = testing::write_samples(folder_, model_case, kFedImages);
    spec_.flip = job::Switch::on;
    spec_.crop = 2;
    samples_.emplace(Samples::open(spec_, data::Split::train, {}, kSeed).value());
  }

  Batches::Options options(int rank) const {
    return {.seed = kSeed, .global_batch = kFedStep, .rank = rank, .end = 2 * kFedImages};
  }

  /// What each rank takes in the steps of two epochs, which have these shares in turns. `feed` of them make it.
  std::vector<std::vector<Batch>> taken(const std::vector<std::vector<int>>& shares, const std::vector<int>& makers,
                                        int workers = 1) {
    const int ranks = int(shares[0].size());
    std::vector<std::vector<Batch>> taken(static_cast<size_t>(ranks));
    run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      Batches batches(*samples_, options(rank));
      if (!makers.empty()) batches.take_from(feed(communicator, *samples_, makers, workers));
      uint64_t position = 0;
      for (size_t step = 0; position < 2 * kFedImages; ++step) {
        taken[size_t(rank)].push_back(batches.take(position, shares[step % shares.size()]).value());
        position += uint64_t(batches.step_size(position));
      }
      EXPECT_TRUE(communicator.barrier(kAfterwards));
    });
    return taken;
  }

  static std::unique_ptr<BatchFeed> feed(comm::Communicator& communicator, const Samples& samples,
                                         const std::vector<int>& makers, int workers) {
    std::vector<int> takers(size_t(communicator.size()));
    std::iota(takers.begin(), takers.end(), 0);
    std::erase_if(takers, [&](int rank) { return std::ranges::find(makers, rank) != makers.end(); });
    return BatchFeed::create(
               communicator, samples.set(),
               {.makers = makers, .takers = takers, .seed = kSeed, .workers = workers, .memory = data::plain_memory})
        .value();
  }

  ScratchFolder folder_;
  job::DataSpec spec_;
  std::optional<Samples> samples_;
};

void expect_same(const std::vector<std::vector<Batch>>& found, const std::vector<std::vector<Batch>>& expected) {
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_EQ(found[rank].size(), expected[rank].size());
    for (size_t step = 0; step < expected[rank].size(); ++step) {
      EXPECT_TRUE(found[rank][step].input.equal(expected[rank][step].input)) << "rank " << rank << ", step " << step;
      EXPECT_TRUE(found[rank][step].target.equal(expected[rank][step].target)) << "rank " << rank << ", step " << step;
    }
  }
}

TEST_F(BatchFeedTest, GivesTheSameBitsInTheSameOrderAsEachRankMakesForItself) {
  const std::vector<std::vector<int>> shares{{11, 0, 5, 0}};
  const auto expected = taken(shares, {});
  EXPECT_EQ(expected[0].size(), 8u) << "the last steps of both epochs are shorter";
  for (const int workers : {0, 3}) expect_same(taken(shares, {1}, workers), expected);
  expect_same(taken(shares, {3, 1}), expected);
}

TEST_F(BatchFeedTest, FollowsSharesThatMoveAndAStepThatIsRepeated) {
  const std::vector<std::vector<int>> shares{{11, 0, 5}, {0, 0, 16}, {7, 0, 9}, {7, 0, 9}};
  expect_same(taken(shares, {1}), taken(shares, {}));
  run_ranks(3, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    Batches own(*samples_, options(communicator.rank())), fed(*samples_, options(communicator.rank()));
    fed.take_from(feed(communicator, *samples_, {1}, 1));
    for (const std::vector<int>& parts : {std::vector{8, 0, 8}, {8, 0, 8}, {4, 0, 12}, {12, 0, 4}})
      EXPECT_TRUE(fed.take(16, parts)->input.equal(own.take(16, parts)->input));
    EXPECT_TRUE(communicator.barrier(kAfterwards));
  });
}

TEST_F(BatchFeedTest, ARankWithoutSamplesThatMakesNoneGetsNone) {
  const std::vector<std::vector<int>> shares{{16, 0, 0}};
  run_ranks(3, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    Batches batches(*samples_, options(communicator.rank()));
    batches.take_from(
        BatchFeed::create(communicator, samples_->set(), {.makers = {1}, .takers = {0}, .memory = data::plain_memory})
            .value());
    EXPECT_EQ(batches.take(0, shares[0])->input.size(0), communicator.rank() == 0 ? 16 : 0);
    EXPECT_TRUE(communicator.barrier(kAfterwards));
  });
}

/// Whose samples cannot be read from one on.
class Broken final : public data::Dataset {
 public:
  explicit Broken(const data::Dataset& set) : set_(set) {}
  size_t size() const override { return set_.size(); }
  size_t input_bytes() const override { return set_.input_bytes(); }
  size_t target_bytes() const override { return set_.target_bytes(); }
  Result<void> write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                     std::span<std::byte> target) const override {
    if (epoch == 2) return failed("images/7.jpg is damaged");
    return set_.write(index, epoch, input, target);
  }

 private:
  const data::Dataset& set_;
};

TEST_F(BatchFeedTest, ASampleThatCannotBeMadeEndsTheMakerAndItsLossTheOthers) {
  std::vector<Error> errors(2);
  const Broken broken(samples_->set());
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto feed = BatchFeed::create(communicator, broken,
                                        {.makers = {1}, .takers = {0}, .seed = kSeed, .memory = data::plain_memory});
    const CutStep first{0, {16, 0}}, bad{kFedImages, {16, 0}};
    EXPECT_TRUE((*feed)->take(std::vector{first, bad}));
    EXPECT_TRUE(communicator.barrier(kAfterwards));
    const auto second = (*feed)->take(std::vector{bad});
    ASSERT_FALSE(second);
    errors[size_t(communicator.rank())] = second.error();
  });
  EXPECT_EQ(errors[1].message, "images/7.jpg is damaged");
  EXPECT_EQ(errors[0].kind, ErrorKind::lost_peer);
  EXPECT_EQ(errors[0].peer, 1);
  EXPECT_THAT(errors[0].message, HasSubstr("rank 1"));
}

// Rank 0 asks for nothing, so that what is sent to it fails, too, after the other error.
TEST_F(BatchFeedTest, OfSeveralErrorsTheFirstOneIsTheCause) {
  const Broken broken(samples_->set());
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto feed = BatchFeed::create(communicator, broken,
                                        {.makers = {1}, .takers = {0}, .seed = kSeed, .memory = data::plain_memory});
    if (communicator.rank() == 1) {
      (*feed)->set_timeout(0.3);
      const CutStep first{0, {16, 0}}, bad{kFedImages, {16, 0}};
      EXPECT_TRUE((*feed)->take(std::vector{first, bad}));
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      EXPECT_EQ((*feed)->take(std::vector{bad}).error().message, "images/7.jpg is damaged");
    }
    EXPECT_TRUE(communicator.barrier(kAfterwards));
  });
}

TEST_F(BatchFeedTest, ASilentMakerIsAnErrorThatNamesIt) {
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto made = feed(communicator, *samples_, {1}, 0);
    made->set_timeout(0.2);
    if (communicator.rank() == 0) {
      const auto taken = made->take(std::vector{CutStep{0, {16, 0}}});
      ASSERT_FALSE(taken);
      EXPECT_THAT(taken.error().message, HasSubstr("rank 1"));
    }
    EXPECT_TRUE(communicator.barrier(kAfterwards));
  });
}

TEST(CutStep, HasAPartForEachRank) {
  const CutStep step{100, {5, 0, 11}};
  EXPECT_EQ(step.count(), 16u);
  EXPECT_EQ(step.part(0), (data::Range{100, 5}));
  EXPECT_EQ(step.part(1), (data::Range{105, 0}));
  EXPECT_EQ(step.part(2), (data::Range{105, 11}));
}

}  // namespace
}  // namespace remuda::train
