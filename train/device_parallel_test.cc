// The engine over CPUs and stand-in accelerators together: what it does when a device is slow, fails or ends.
#include <gtest/gtest.h>
#include <latch>
#include <thread>

#include "comm/testing/run_ranks.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

using testing::configure_standin;
using testing::WaitKind;

TEST(DevicesInParallel, StateIsDividedEvenlyWhereTheMemoryOfADeviceIsNotKnown) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const DeviceOps ops =
        DeviceOps::open(communicator.rank() == 1 ? torch::Device(torch::kXPU, 0) : torch::kCPU).value();
    const auto weight = torch::ones({64}, torch::device(ops.device()).requires_grad(true));
    const auto parallel = DataParallel::create(communicator, ops, {weight}, [&] { weight.sum().backward(); }).value();
    EXPECT_EQ(parallel->flat().layout().owned(0), 32u);
  });
}

TEST(DevicesInParallel, WaitForTheDeviceAsLongAsForTheOthers) {
  for (const int ranks : {1, 2})
    run_ranks(ranks, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const bool is_host = communicator.rank() == 1;
      const DeviceOps ops = DeviceOps::open(is_host ? torch::kCPU : torch::Device(torch::kXPU, 0)).value();
      const auto weight = torch::ones({64}, torch::device(ops.device()).requires_grad(true));
      const auto backward = [&] { weight.sum().backward(); };
      const auto parallel = DataParallel::create(communicator, ops, {weight}, backward).value();
      if (is_host) return;
      parallel->set_timeout(0);
      parallel->begin({.weight = 1});
      backward();
      configure_standin(0, {.random_delay_s = 0.2});
      const auto step = parallel->reduce();
      ASSERT_FALSE(step);
      EXPECT_EQ(step.error().message, ranks == 1 ? "xpu:0 did not finish the norm of its gradients within 0 s"
                                                 : "xpu:0 did not finish the copy of gradients (bucket 0) within 0 s");
      configure_standin(0, {});
    });
}

/// The copy of a bucket is under way, and the queue waits for it, when everything ends.
TEST(DevicesInParallel, EndTheirWorkBeforeWhatTheWorkUses) {
  configure_standin(0, {.random_delay_s = 0.05});
  std::latch ended(1);
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    if (communicator.rank() == 1) {  // it does nothing, and is not lost before the other one has ended
      const std::vector weights{torch::ones({3}, torch::requires_grad()), torch::ones({5}, torch::requires_grad())};
      const auto other =
          DataParallel::create(communicator, testing::cpu_ops(), weights,
                               [&] { (weights[0].sum() + weights[1].sum()).backward(); }, {.bucket_bytes = 1});
      return ended.wait();
    }
    const torch::Device device(torch::kXPU, 0);
    const DeviceOps ops = DeviceOps::open(device).value();
    bool copied = false;
    std::shared_ptr<void> used(nullptr, [&](void*) {
      const c10::impl::VirtualGuardImpl guard(torch::kXPU);
      copied = guard.queryStream(guard.getStreamFromGlobalPool(device));
    });
    const auto options = torch::device(device).requires_grad(true);
    const std::vector weights{torch::ones({3}, options), torch::ones({5}, options)};
    const auto backward = [&] { (weights[0].sum() + weights[1].sum()).backward(); };
    auto parallel = DataParallel::create(communicator, ops, weights, backward,
                                         {.bucket_bytes = 1, .before_send = [used = std::move(used)] {}})
                        .value();
    parallel->set_timeout(1);  // for the other one, which does not come
    testing::watch_waits(0, WaitKind::host_for_copies, -1);
    parallel->begin({.weight = 1});
    backward();
    while (testing::watch_waits(0, WaitKind::host_for_copies, -1) == 0) std::this_thread::yield();
    parallel.reset();
    EXPECT_TRUE(copied);
    ended.count_down();
  });
  configure_standin(0, {});
}

/// The device fails while a hook gives it the copy of the first bucket.
TEST(DevicesInParallel, AHookThatFailsGivesUpTheStepOfAllRanks) {
  constexpr int kFailing = 1;
  run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const DeviceOps ops =
        DeviceOps::open(communicator.rank() == kFailing ? torch::Device(torch::kXPU, 0) : torch::kCPU).value();
    std::vector<torch::Tensor> weights;
    for (const int size : {3, 5})
      weights.push_back(torch::ones({size}, torch::device(ops.device()).requires_grad(true)));
    const auto backward = [&] { (weights[0].sum() + weights[1].sum()).backward(); };
    bool fails = false;
    const auto before_send = [&fails] {
      if (fails) testing::lose_standin(0);
    };
    const auto parallel =
        DataParallel::create(communicator, ops, weights, backward, {.bucket_bytes = 1, .before_send = before_send})
            .value();
    parallel->begin({.weight = 1});
    if (communicator.rank() == kFailing) {
      fails = true;
      EXPECT_ANY_THROW(backward());
      fails = false;
      testing::lose_standin(0, false);
      parallel->give_up(kOutOfMemory);
    } else {
      backward();
    }
    const auto step = parallel->reduce();
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_FALSE(step->stands);
    EXPECT_EQ(step->totals.first_with(kOutOfMemory), kFailing);

    parallel->begin({.weight = 1});
    backward();
    const auto next = testing::reduce_and_update(*parallel, 1);
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_TRUE(next->stands);
    EXPECT_TRUE(weights[1].to(torch::kCPU).eq(0).all().item<bool>());
    EXPECT_TRUE(parallel->check_parameters(1));
  });
}

/// The device is full from the moment that the gradients are there.
TEST(DevicesInParallel, AnUpdateTakesNoMemoryOfTheDevice) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    const bool on_device = communicator.rank() == 1;
    const DeviceOps ops = DeviceOps::open(on_device ? torch::Device(torch::kXPU, 0) : torch::kCPU).value();
    const auto weight = torch::full({3000}, 2.0, torch::device(ops.device()).requires_grad(true));
    const auto backward = [&] { weight.sum().backward(); };
    const auto parallel =
        DataParallel::create(communicator, ops, {weight}, backward,
                             {.rule = {.kind = UpdateRule::Kind::adamw}, .average = 0.5, .state_shares = {1, 1}})
            .value();
    for (int step = 0; step < 2; ++step) {
      parallel->begin({.weight = 1});
      backward();
      const auto reduced = parallel->reduce();
      ASSERT_TRUE(reduced && reduced->stands);
      if (on_device) configure_standin(0, {.memory_cap = testing::standin_memory(0)});
      ASSERT_TRUE(parallel->update(*reduced, {{0.5, 0}}));
      ASSERT_TRUE(parallel->swap_average());
      ASSERT_TRUE(parallel->swap_average());
      if (on_device) configure_standin(0, {});
    }
    EXPECT_TRUE(parallel->check_parameters(2));
    EXPECT_LT((weight.to(torch::kCPU) - 1).abs().max().item<double>(), 1e-5) << "each step of AdamW is the rate";
  });
}

}  // namespace
}  // namespace remuda::train
