// What a rank waits for although the order of what its device does would be right without it: its times, and memory
// that the device still reads.
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"
#include "train/local_step.h"
#include "train/testing/parallel.h"
#include "train/testing/standin/standin.h"

namespace remuda::train {
namespace {

class DeviceWaits : public ::testing::Test {
 protected:
  DeviceWaits() { model_->to(ops_.device()); }
  void TearDown() override { testing::configure_standin(0, {}); }

  static bool is_idle() {
    const c10::impl::VirtualGuardImpl guard(torch::kXPU);
    return guard.queryStream(guard.getStream(torch::Device(torch::kXPU, 0)));
  }

  const DeviceOps ops_ = DeviceOps::open(torch::Device(torch::kXPU, 0)).value();
  const testing::ModelCase case_ = testing::model_cases().front();
  const std::unique_ptr<Model> model_ = testing::make_seeded(case_, torch::kFloat);
  Pace pace_{1, steady_clock()};
  LocalStep local_{*model_, ops_, pace_, {.padding = case_.padding}};
};

TEST_F(DeviceWaits, AStepAloneHasEndedWhenItsTimeIsTaken) {
  testing::configure_standin(0, {.lazy_compute = true});
  ASSERT_TRUE(local_.run_alone(testing::make_batch(case_, 4, 1, torch::kFloat)));
  EXPECT_TRUE(is_idle());
}

TEST_F(DeviceWaits, AStepOfADeviceThatHangsHasAnEnd) {
  run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const Batch batch = testing::make_batch(case_, 4, 1, torch::kFloat);
    const auto parallel =
        DataParallel::create(communicator, ops_, model_->parameters(),
                             testing::trial(case_, *model_, {batch.input.to(ops_.device()), batch.target}))
            .value();
    LocalStep impatient(*model_, ops_, pace_, {.padding = case_.padding, .timeout_s = 0});
    testing::configure_standin(0, {.random_delay_s = 0.002});
    try {
      impatient.run(batch, {}, *parallel);
      ADD_FAILURE() << "waited longer";
    } catch (const std::exception& error) {
      EXPECT_STREQ(error.what(), "xpu:0 did not finish a step within 0 s");
    }
  });
}

TEST_F(DeviceWaits, AnUpdateHasEndedWhenTheWaitForOthersBegins) {
  run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto weight = torch::ones({64}, torch::device(ops_.device()).requires_grad(true));
    const auto backward = [&] { weight.sum().backward(); };
    bool idle = false;
    const auto parallel =
        DataParallel::create(communicator, ops_, {weight}, backward, {.before_wait = [&] { idle = is_idle(); }})
            .value();
    parallel->begin({.weight = 1});
    backward();
    const auto step = parallel->reduce();
    ASSERT_TRUE(step) << step.error().message;
    testing::configure_standin(0, {.random_delay_s = 0.02});
    ASSERT_TRUE(parallel->update(*step, {{1, 0}}));
    EXPECT_TRUE(idle);
  });
}

/// By what a device that hangs is blamed for.
TEST_F(DeviceWaits, AnUpdateIsWaitedForByWhatFollowsItWhereTheJobAsksForFewerWaits) {
  for (const bool waits : {true, false})
    run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      const bool is_host = communicator.rank() == 1;
      const DeviceOps& ops = is_host ? testing::cpu_ops() : ops_;
      const auto weight = torch::ones({64}, torch::device(ops.device()).requires_grad(true));
      const auto backward = [&] { weight.sum().backward(); };
      const auto parallel =
          DataParallel::create(communicator, ops, {weight}, backward, {.waits_for_updates = waits}).value();
      parallel->begin({.weight = 1});
      backward();
      const auto step = parallel->reduce();
      ASSERT_TRUE(step) << step.error().message;
      if (is_host) return;
      parallel->set_timeout(0);
      testing::configure_standin(0, {.random_delay_s = 0.2});
      const auto updated = parallel->update(*step, {{1, 0}});
      ASSERT_FALSE(updated);
      EXPECT_EQ(updated.error().message, waits ? "xpu:0 did not finish an update within 0 s"
                                               : "xpu:0 did not finish the copy of parameters (bucket 0) within 0 s");
      testing::configure_standin(0, {});
    });
}

/// Then what the device does next waits, and nobody else has to.
TEST_F(DeviceWaits, AnUpdateOfTheOnlyRankKeepsNobodyWaiting) {
  run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
    const auto weight = torch::ones({64}, torch::device(ops_.device()).requires_grad(true));
    const auto backward = [&] { weight.sum().backward(); };
    const auto parallel =
        DataParallel::create(communicator, ops_, {weight}, backward, {.waits_for_updates = false}).value();
    for (int step = 1; step <= 3; ++step) {
      parallel->begin({.weight = 1});
      backward();
      const auto reduced = parallel->reduce();
      ASSERT_TRUE(reduced) << reduced.error().message;
      testing::configure_standin(0, {.random_delay_s = 0.05});
      ASSERT_TRUE(parallel->update(*reduced, {{1, 0}}));
      EXPECT_FALSE(is_idle());
      testing::configure_standin(0, {});
      EXPECT_TRUE(weight.eq(1 - step).all().item<bool>());
    }
  });
}

/// Also in pieces; the losses of all of them are there when the step has ended.
TEST_F(DeviceWaits, OneWaitBringsAllLosses) {
  const Batch batch = testing::make_batch(case_, 9, 1, torch::kFloat);
  for (const size_t pieces : {1u, 4u}) {
    std::array<double, 2> losses{};
    for (const bool one_wait : {false, true})
      run_ranks(1, comm::kSharedMemory, [&](comm::Communicator& communicator) {
        const auto parallel =
            DataParallel::create(communicator, ops_, model_->parameters(),
                                 testing::trial(case_, *model_, {batch.input.to(ops_.device()), batch.target}))
                .value();
        LocalStep step(*model_, ops_, pace_, {.padding = case_.padding, .pieces = pieces, .one_wait = one_wait});
        testing::configure_standin(0, {.random_delay_s = 0.001});
        step.run(batch, {}, *parallel);
        losses[one_wait] = parallel->report().loss_sum;
        ASSERT_TRUE(parallel->reduce());
        testing::configure_standin(0, {});
      });
    EXPECT_GT(losses[0], 0);
    EXPECT_NEAR(losses[1], losses[0], 1e-12 * losses[0]) << "double precision, in another order";
  }
}

/// A step that is given up waits for nothing, so the copy of its samples may still be under way. That of the stand-in
/// holds them itself, so this looks after it has ended.
TEST_F(DeviceWaits, SamplesStayInMemoryUntilTheNextStep) {
  const Batch batch = testing::make_batch(case_, 4, 1, torch::kFloat);
  const auto users = batch.input.storage().use_count();
  testing::configure_standin(0, {.memory_cap = testing::standin_memory(0) + batch.input.nbytes() + 64});
  EXPECT_FALSE(local_.run_alone(batch));
  testing::configure_standin(0, {});
  EXPECT_GT(batch.input.storage().use_count(), users);
}

}  // namespace
}  // namespace remuda::train
