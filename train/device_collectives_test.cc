// Buckets that go from device to device: whether they may, and what happens when the library hangs or fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/device/collectives.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/library.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using comm::LibraryFault;
using ::testing::AllOf;
using testing::configure_standin;
using ::testing::HasSubstr;
using testing::use_standin_library;

torch::Device standin(int rank) { return {torch::kXPU, c10::DeviceIndex(rank)}; }

class TrainByDevices : public ::testing::Test {
 protected:
  TrainByDevices() { use_standin_library(); }
  ~TrainByDevices() override {
    EXPECT_EQ(comm::standin_library_members(), 0) << "all were ended";
    for (int device = 0; device < testing::kStandinDevices; ++device) {
      testing::lose_standin(device, false);
      configure_standin(device, {});
    }
  }

  /// Why two ranks on these devices go without; both must say the same.
  static std::string why_not(std::vector<torch::Device> devices, const CollectivesTrial& trial) {
    std::vector<std::string> reasons(devices.size());
    run_ranks(int(devices.size()), comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const auto rank = size_t(communicator.rank());
      const DeviceOps ops = DeviceOps::open(devices[rank]).value();
      reasons[rank] = open_collectives(communicator, ops, trial).value().why_not;
    });
    for (const std::string& reason : reasons) EXPECT_EQ(reason, reasons[0]);
    return reasons[0];
  }
};

TEST_F(TrainByDevices, NeedsADeviceOfOneMakerForEachRank) {
  EXPECT_EQ(why_not({standin(0), standin(1)}, {}), "");
  EXPECT_EQ(why_not({standin(0), torch::kCPU}, {}), "rank 0 is on a cuda device, rank 1 is on a cpu device");
  EXPECT_EQ(why_not({standin(1), standin(1)}, {}), "ranks 0 and 1 share the device 0000:01:00.0");
}

TEST_F(TrainByDevices, IsNotTrustedWithSizesThatItAddsUpWrongly) {
  use_standin_library({.fault = LibraryFault::wrong_sum, .rank = 1, .least_bytes = 100 << 10});
  EXPECT_EQ(why_not({standin(0), standin(1)}, {}), "rank 1: a sum of 1048576 bytes by NCCL 2.21.5 is wrong");
  use_standin_library({.fault = LibraryFault::wrong_sum, .rank = 1, .least_bytes = 8 << 20});
  EXPECT_EQ(why_not({standin(0), standin(1)}, {}), "");
  EXPECT_EQ(why_not({standin(0), standin(1)}, {.largest_bytes = 16 << 20}),
            "rank 1: a sum of 16777216 bytes by NCCL 2.21.5 is wrong");
}

/// Each of the four sizes is two calls.
TEST_F(TrainByDevices, IsNotTrustedWithSizesThatHangOrFail) {
  const CollectivesTrial briefly{.connect_timeout_s = 10, .timeout_s = 1};
  use_standin_library({.fault = LibraryFault::work_hangs, .rank = 0, .after_calls = 2});
  EXPECT_EQ(why_not({standin(0), standin(1)}, briefly),
            "rank 0: xpu:0 did not finish a sum of 65536 bytes by NCCL 2.21.5 within 1 s");
  use_standin_library({.fault = LibraryFault::call_hangs, .rank = 0, .after_calls = 5});
  EXPECT_EQ(why_not({standin(0), standin(1)}, briefly), "rank 0: NCCL 2.21.5 did not take ncclGroupEnd within 1 s");
  use_standin_library({.fault = LibraryFault::work_fails, .rank = 1, .after_calls = 0});
  EXPECT_THAT(why_not({standin(0), standin(1)}, briefly), HasSubstr("rank "));
}

/// One step after the trial, whose outcome each rank returns.
std::vector<Result<void>> outcomes_of_step(double timeout_s) {
  std::vector<Result<void>> outcomes(2);
  run_ranks(
      2, comm::kSharedMemory,
      [&](comm::Communicator& communicator) {
        const int rank = communicator.rank();
        const DeviceOps ops = DeviceOps::open(standin(rank)).value();
        const auto opened = open_collectives(communicator, ops).value();
        ASSERT_EQ(opened.why_not, "");
        std::vector<torch::Tensor> weights;
        for (const int size : {30, 50})
          weights.push_back(torch::ones({size}, torch::device(ops.device()).requires_grad(true)));
        const auto backward = [&] { (weights[0].sum() + weights[1].sum()).backward(); };
        const auto parallel = DataParallel::create(communicator, ops, weights, backward,
                                                   {.bucket_bytes = 1, .collectives = opened.collectives.get()})
                                  .value();
        parallel->set_timeout(timeout_s);
        parallel->begin({.weight = 1});
        backward();
        const auto step = testing::reduce_and_update(*parallel, 0.5);
        if (!step)
          outcomes[size_t(rank)] = tl::unexpected(step.error());
        else
          EXPECT_TRUE(parallel->check_parameters(1) && weights[0].to(torch::kCPU).eq(0.5).all().item<bool>());
      },
      30);
  return outcomes;
}

constexpr int kTrialCalls = 8;

TEST_F(TrainByDevices, GoesOnAfterTheTrial) {
  for (const auto& outcome : outcomes_of_step(30)) EXPECT_TRUE(outcome) << outcome.error().message;
}

TEST_F(TrainByDevices, WorkThatHangsIsAnErrorThatNamesBothSides) {
  use_standin_library({.fault = LibraryFault::work_hangs, .rank = 1, .after_calls = kTrialCalls + 1});
  const auto outcomes = outcomes_of_step(1);
  ASSERT_FALSE(outcomes[0]);
  ASSERT_FALSE(outcomes[1]);
  EXPECT_EQ(outcomes[0].error().message,
            "rank 0: xpu:0 did not finish the sum of bucket 1 by NCCL 2.21.5 within 1 s (1 of 2 calls done); "
            "rank 1: xpu:1 did not finish the sum of bucket 1 by NCCL 2.21.5 within 1 s (1 of 2 calls done)");
  EXPECT_EQ(outcomes[1].error().message, outcomes[0].error().message);
}

TEST_F(TrainByDevices, ARankWhoseLibraryTakesNoCallIsTheOneThatIsBehind) {
  use_standin_library({.fault = LibraryFault::call_hangs, .rank = 1, .after_calls = kTrialCalls + 2});
  const auto outcomes = outcomes_of_step(1);
  ASSERT_FALSE(outcomes[0]);
  ASSERT_FALSE(outcomes[1]);
  EXPECT_THAT(outcomes[0].error().message,
              AllOf(HasSubstr("rank 1: NCCL 2.21.5 did not take ncclGroupEnd within 1 s (2 of 2 calls done); rank 0: "
                              "xpu:0 did not finish the parameters of bucket 0 by NCCL 2.21.5"),
                    HasSubstr("calls done)")));
  EXPECT_EQ(outcomes[1].error().message, outcomes[0].error().message);
}

TEST_F(TrainByDevices, WhatTheLibraryRefusesEndsTheRunAtOnce) {
  use_standin_library({.fault = LibraryFault::call_fails, .rank = 1, .after_calls = kTrialCalls + 1});
  const auto outcomes = outcomes_of_step(1);
  ASSERT_FALSE(outcomes[1]);
  EXPECT_EQ(outcomes[1].error().message, "NCCL 2.21.5: ncclGroupEnd: unhandled system error (as the test wants it)");
  ASSERT_FALSE(outcomes[0]);
  EXPECT_EQ(outcomes[0].error().peer, 1) << outcomes[0].error().message;
}

TEST_F(TrainByDevices, AnErrorOfTheWorkEndsTheWaitForIt) {
  use_standin_library({.fault = LibraryFault::work_fails, .rank = 1, .after_calls = kTrialCalls + 1});
  const auto outcomes = outcomes_of_step(1);
  ASSERT_FALSE(outcomes[1]);
  EXPECT_THAT(outcomes[1].error().message, HasSubstr("in work under way: remote process exited"));
}

}  // namespace
}  // namespace remuda::train
