// On the stand-in accelerator and its library.
#include "train/device/collectives_speed.h"

#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/device/collectives.h"
#include "train/testing/standin/library.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

/// 20 us and 10 GB/s: at 1.8 MB a call takes 200 us, a tenth of which is latency.
TEST(CollectivesSpeed, LatencyIsATenthOfTheTimeOfABucket) {
  const CollectivesSpeed speed{20e-6, 1e-10};
  const double bytes = bucket_bytes_by(speed, 1e6);
  EXPECT_NEAR(speed.latency_s / (speed.latency_s + bytes * speed.seconds_per_byte), 0.1, 1e-12);
  EXPECT_NEAR(bytes, 1.8e6, 1);
}

TEST(CollectivesSpeed, ABucketIsNoSmallerThanTheJobSaysNorAsLargeAsAllMemory) {
  EXPECT_EQ(bucket_bytes_by({1e-6, 1e-9}, 4 << 20), 4 << 20);
  EXPECT_EQ(bucket_bytes_by({1, 1e-12}, 4 << 20), 256 << 20);
  EXPECT_EQ(bucket_bytes_by({1e-6, 0}, 4 << 20), 256 << 20) << "a byte took no time";
  EXPECT_EQ(bucket_bytes_by({0, 1e-9}, 1 << 30), 1 << 30);
}

TEST(CollectivesSpeed, IsTheSameOnAllRanks) {
  testing::use_standin_library();
  std::array<CollectivesSpeed, 2> all;
  comm::run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const DeviceOps ops = DeviceOps::open(torch::Device(torch::kXPU, int8_t(communicator.rank()))).value();
    const auto opened = open_collectives(communicator, ops, {.largest_bytes = 1 << 10}).value();
    ASSERT_TRUE(opened.collectives) << opened.why_not;
    const auto speed = measure_collectives(communicator, *opened.collectives, ops, 10);
    ASSERT_TRUE(speed) << speed.error().message;
    all[size_t(communicator.rank())] = *speed;
  });
  EXPECT_GT(all[0].latency_s, 0);
  EXPECT_GT(all[0].seconds_per_byte, 0);
  EXPECT_EQ(all[0].latency_s, all[1].latency_s);
  EXPECT_EQ(all[0].seconds_per_byte, all[1].seconds_per_byte);
}

}  // namespace
}  // namespace remuda::train
