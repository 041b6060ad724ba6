#include "train/alone.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "comm/testing/run_ranks.h"

namespace remuda::train {
namespace {

using balance::BatchTime;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int kWholeBatch = 256;
constexpr double kLimit_s = 20;

/// A device whose time is in proportion to the batch, by its own clock.
struct TimedDevice {
  double whole_batch_s = 1;
  int fits = kWholeBatch;  ///< samples, in its memory
  double spent_s = 0;
  std::vector<int> tried;

  double trial(int batch) {
    tried.push_back(batch);
    if (batch > fits) return INFINITY;
    const double took = whole_batch_s * batch / kWholeBatch;
    spent_s += took;
    return took;
  }
  std::vector<BatchTime> measure() {
    const AloneWork work{.trial = [this](int batch) { return trial(batch); }, .limit_s = kLimit_s};
    return measure_device(kWholeBatch, work, [](double) -> Result<bool> { return true; }).value();
  }
};

std::vector<int> batches_of(const std::vector<BatchTime>& times) {
  std::vector<int> batches;
  for (const auto& time : times) batches.push_back(time.batch);
  return batches;
}

TEST(Alone, FastDeviceIsTriedSevenTimesAtEachSize) {
  TimedDevice device{.whole_batch_s = 0.1};
  const auto times = device.measure();
  EXPECT_EQ(batches_of(times), (std::vector{256, 128, 64}));
  for (const auto& time : times) {
    EXPECT_NEAR(time.seconds, 0.1 * time.batch / kWholeBatch, 1e-9);
    EXPECT_EQ(std::ranges::count(device.tried, time.batch), 7);
  }
  EXPECT_NEAR(alone_samples_per_s(times), kWholeBatch / 0.1, 1e-6);
}

TEST(Alone, SlowDeviceIsMeasuredWithinItsTime) {
  for (const double whole_batch_s : {1., 8., 24., 60., 500., 4000.}) {
    SCOPED_TRACE(whole_batch_s);
    TimedDevice device{.whole_batch_s = whole_batch_s};
    const auto times = device.measure();
    EXPECT_LE(device.spent_s, std::max(kLimit_s, whole_batch_s / kWholeBatch));
    ASSERT_FALSE(times.empty());
    EXPECT_NEAR(alone_samples_per_s(times), kWholeBatch / whole_batch_s, 1e-6);
  }
}

TEST(Alone, FirstTrialIsOneSampleSoThatNoneIsLong) {
  TimedDevice device{.whole_batch_s = 1e4};
  EXPECT_EQ(batches_of(device.measure()), std::vector{1});
  EXPECT_THAT(device.tried, SizeIs(1));
}

TEST(Alone, BatchThatDoesNotFitInMemoryIsTriedOnce) {
  TimedDevice device{.whole_batch_s = 0.1, .fits = 200};
  const auto times = device.measure();
  EXPECT_EQ(batches_of(times), (std::vector{256, 128, 64}));
  EXPECT_TRUE(std::isinf(times[0].seconds));
  EXPECT_EQ(std::ranges::count(device.tried, 256), 1);
  EXPECT_EQ(std::ranges::count(device.tried, 128), 7);
  EXPECT_NEAR(alone_samples_per_s(times), kWholeBatch / 0.1, 1e-6);
}

TEST(Alone, DeviceWithoutMemoryForASampleHasNoSpeed) {
  TimedDevice device{.fits = 0};
  EXPECT_EQ(alone_samples_per_s(device.measure()), 0);
}

TEST(Alone, SmallestBatchesAreMeasuredToo) {
  for (const int batch : {1, 2, 3, 5}) {
    const AloneWork work{.trial = [](int size) { return 1e-3 * size; }};
    const auto times = measure_device(batch, work, [](double) -> Result<bool> { return true; }).value();
    EXPECT_EQ(times.front().batch, batch);
    EXPECT_NEAR(alone_samples_per_s(times), 1000, 1e-6);
  }
}

TEST(Alone, BatchesAreWholeUnits) {
  EXPECT_THAT(trial_batches(240, 16), ElementsAre(240, 112, 48));
  EXPECT_THAT(trial_batches(16, 16), ElementsAre(16, 16, 16));
  EXPECT_THAT(trial_batches(10, 16), ElementsAre(10, 10, 10)) << "fewer samples than that";
  std::vector<int> tried;
  const AloneWork work{.unit = 8, .trial = [&](int size) {
                         tried.push_back(size);
                         return 1e-3 * size;
                       }};
  ASSERT_TRUE(measure_device(512, work, [](double) -> Result<bool> { return true; }));
  tried.resize(5);
  EXPECT_THAT(tried, ElementsAre(8, 32, 128, 256, 512));
}

// The communicator's timeout is two seconds here; the trials of one device together take longer.
TEST(Alone, OtherRanksWaitForATrialAndNotForTheWholeMeasuring) {
  constexpr int kRanks = 3;
  run_ranks(
      kRanks, comm::kSharedMemory,
      [&](comm::Communicator& communicator) {
        const bool slow = communicator.rank() == 1;
        const AloneWork work{.trial =
                                 [&](int batch) {
                                   const double seconds = (slow ? 0.3 : 0.001) * batch / kWholeBatch;
                                   std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
                                   return seconds;
                                 },
                             .limit_s = 2.4,
                             .sign_every_s = 0.3};
        const auto times = measure_alone(communicator, kWholeBatch, work);
        ASSERT_TRUE(times) << times.error().message;
        EXPECT_FALSE(times->leaving);
        ASSERT_THAT(times->by_rank, SizeIs(kRanks));
        EXPECT_THAT(times->by_rank, Each(SizeIs(3)));
        EXPECT_NEAR(alone_samples_per_s(times->by_rank[1]), kWholeBatch / 0.3, 1e-6);
        EXPECT_NEAR(alone_samples_per_s(times->by_rank[2]), kWholeBatch / 0.001, 1e-3);
      },
      2.0);
}

TEST(Alone, RankThatIsAskedToStopEndsTheMeasuringForAll) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    int trials = 0;
    const AloneWork work{.trial =
                             [&](int batch) {
                               ++trials;
                               return 1e-4 * batch;
                             },
                         .leave = [&] { return communicator.rank() == 1 && trials == 2; }};
    const auto times = measure_alone(communicator, kWholeBatch, work);
    ASSERT_TRUE(times) << times.error().message;
    EXPECT_TRUE(times->leaving);
    EXPECT_THAT(times->by_rank[0], SizeIs(3));
    EXPECT_THAT(times->by_rank[2], SizeIs(0)) << "its turn did not come";
  });
}

}  // namespace
}  // namespace remuda::train
