// Runs on simulated machines whose steps take what no measurement of a device alone shows.
#include "balance/participants.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "balance/balancer.h"

namespace remuda::balance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A run with Balancer and Participants, as a trainer has them.
class SimulatedRun {
 public:
  /// `exchange_s`: what a step takes besides, by how many take part; `contention`: by which factor computing is slower
  /// when more than one does.
  SimulatedRun(std::vector<SplitDevice> devices, int batch, std::vector<double> exchange_s, double contention = 1)
      : devices_(std::move(devices)),
        exchange_s_(std::move(exchange_s)),
        contention_(contention),
        batch_(batch),
        balancer_({.global_batch = batch, .bounds = std::vector<Bounds>(devices_.size())}) {
    const auto first = best_split(devices_, {.batch = batch});
    state_ = first->state;
    std::vector<std::string> names;
    for (size_t i = 0; i < devices_.size(); ++i) names.push_back("cpu:" + std::to_string(i));
    participants_.emplace(ParticipantsOptions{devices_, {.batch = batch}, state_, names});
    for (size_t i = 0; i < devices_.size(); ++i)
      for (const int size : {batch, batch / 2, batch / 4})
        balancer_.calibrate(int(i), size, devices_[i].compute.seconds(size));
    EXPECT_TRUE(balancer_.start());
  }

  double step_s(const std::vector<int>& shares, const std::vector<double>& state, std::vector<double>* parts = nullptr,
                std::vector<double>* updates = nullptr) const {
    size_t working = 0;
    for (size_t i = 0; i < shares.size(); ++i) working += shares[i] > 0 || state[i] > 0;
    const double slower = working > 1 ? contention_ : 1;
    double part_s = 0, update_s = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      const double part = shares[i] > 0 ? slower * devices_[i].compute.seconds(shares[i]) : 0;
      const double fixed_s = i < fixed_update_s_.size() && state[i] > 0 ? fixed_update_s_[i] : 0;
      const double update = slower * (fixed_s + state[i] * devices_[i].update_s);
      if (parts) parts->push_back(part);
      if (updates) updates->push_back(update);
      part_s = std::max(part_s, part);
      update_s = std::max(update_s, update);
    }
    return part_s + update_s + exchange_s_.at(working - 1);
  }

  void run(int steps) {
    for (; steps > 0; --steps, ++step_) {
      std::vector<double> parts, updates;
      const std::vector<int> shares = balancer_.shares();
      const double slower = slower_at_(step_), seconds = slower * step_s(shares, state_, &parts, &updates);
      for (double& one : parts) one *= slower;
      for (double& one : updates) one *= slower;
      seconds_ += seconds;
      balancer_.observe(step_, parts);
      const auto change = participants_->observe({shares, updates, seconds});
      if (!change) continue;
      reasons_.push_back(change->reason);
      if (state_ != change->state) {
        ++moves_;
        participants_->took_move(move_s_);
        seconds_ += move_s_;
      }
      state_ = change->state;
      balancer_.allow(step_, change->takes_part, change->reason);
    }
  }

  /// The best of all subsets, by the shares that the law finds for each.
  double best_s() const {
    double best = INFINITY;
    for (unsigned subset = 1; subset < 1U << devices_.size(); ++subset) {
      std::vector<SplitDevice> some = devices_;
      for (size_t i = 0; i < devices_.size(); ++i)
        if (!(subset >> i & 1)) some = without(some, i);
      const auto split = best_split(some, {.batch = batch_});
      best = std::min(best, step_s(split->shares, split->state));
    }
    return best;
  }

  std::vector<SplitDevice> devices_;
  std::vector<double> exchange_s_;
  double contention_;
  int batch_;
  Balancer balancer_;
  std::optional<Participants> participants_;
  std::vector<double> state_;
  std::vector<std::string> reasons_;
  std::vector<double> fixed_update_s_;                              ///< of any part, besides
  std::function<double(int)> slower_at_ = [](int) { return 1.0; };  ///< all devices, in this step
  double seconds_ = 0, move_s_ = 0;
  int moves_ = 0;
  int step_ = 0;
};

/// mlp with hidden = [2048, 2048] and AdamW: 24 ms for 64 samples, 16 ms for an update.
SplitDevice mlp_device(double slowdown) {
  return {.compute = {1e-3 * slowdown, 0.36e-3 * slowdown}, .update_s = 16e-3 * slowdown};
}

TEST(Participants, AreWithoutASlowDeviceWhoseExchangeCostsMoreThanItGives) {
  for (const double slowdown : {3.0, 8.0, 16.0}) {
    SimulatedRun run({mlp_device(1), mlp_device(slowdown)}, 64, {1e-3, 16e-3});
    run.run(64);
    EXPECT_THAT(run.balancer_.shares(), ElementsAre(64, 0)) << slowdown;
    EXPECT_THAT(run.state_, ElementsAre(1, 0)) << slowdown;
    ASSERT_FALSE(run.reasons_.empty());
    EXPECT_THAT(run.reasons_[0], HasSubstr("cpu:1 is left out: with it "));
    const std::vector<LeftOut> left_out = run.participants_->left_out();
    ASSERT_EQ(left_out.size(), 1u);
    EXPECT_EQ(left_out[0].device, 1u);
    EXPECT_TRUE(left_out[0].was_tried);
    EXPECT_GT(left_out[0].with_s, left_out[0].without_s);
    EXPECT_NEAR(left_out[0].without_s, run.step_s({64, 0}, {1, 0}), 1e-9);
  }
}

TEST(Participants, MoveNoStateForEverWhereUpdatesHaveAFixedPart) {
  SimulatedRun run({{.compute = {0, 1e-4}, .update_s = 2e-3}, {.compute = {0, 1e-4}, .update_s = 2e-3}}, 64, {0, 0});
  run.fixed_update_s_ = {1e-3, 5e-3};
  run.run(5000);
  EXPECT_LE(run.moves_, 8);
  EXPECT_GT(run.state_[1], 1e-6);
}

TEST(Participants, TryOthersLessOftenWhereStateIsLongInMoving) {
  SimulatedRun run({mlp_device(1), mlp_device(3)}, 64, {1e-3, 16e-3});
  run.move_s_ = 50 * run.best_s();
  run.run(10000);
  EXPECT_LE(run.moves_ * run.move_s_, 0.02 * run.seconds_) << run.moves_ << " moves";
  EXPECT_THAT(run.balancer_.shares(), ElementsAre(64, 0));
}

/// As where neighbours take a third of a machine for half a minute, again and again: that says nothing of any set.
TEST(Participants, DoNotComeAndGoWithTheHour) {
  SimulatedRun run({mlp_device(1), mlp_device(3)}, 64, {1e-3, 3e-3});
  std::mt19937 random(7);
  double slower = 1;
  run.slower_at_ = [&](int step) {
    if (step % 15 == 0) slower = 1 + 0.7 * double(random() % 1000) / 1000;
    return slower;
  };
  run.run(3000);
  EXPECT_LE(run.moves_, 30);
}

TEST(Participants, TakeInAgainWhomALimitNeeds) {
  const std::vector<SplitDevice> devices{mlp_device(1), mlp_device(8)};
  Participants participants({devices, {.batch = 64}, {1, 0}, {"cpu:0", "cpu:1"}});
  participants.limit(0, 40, {true, true});
  EXPECT_THAT(participants.left_out(), IsEmpty());
  for (int step = 0; step < 100; ++step)
    EXPECT_FALSE(participants.observe({{40, 24}, {16e-3, 0}, 0.1})) << "one alone has no room for the batch";
}

TEST(Participants, StayTogetherWhereThatIsFaster) {
  SimulatedRun run({mlp_device(1), mlp_device(1)}, 64, {1e-3, 5e-3}, 1.2);
  run.run(3000);
  EXPECT_THAT(run.reasons_, IsEmpty());
  EXPECT_THAT(run.participants_->left_out(), IsEmpty());
  EXPECT_THAT(run.balancer_.shares(), ElementsAre(32, 32));
}

TEST(Participants, GoBackToWhatWasFaster) {
  SimulatedRun run({mlp_device(1), mlp_device(2)}, 64, {30e-3, 20e-3});  // alone is slower than it was measured
  run.run(400);
  EXPECT_GT(run.balancer_.shares()[1], 0);
  EXPECT_GT(run.state_[1], 0);
  EXPECT_GE(run.reasons_.size(), 2u) << "alone was tried";
}

TEST(Participants, AreNearTheBestSubsetOnEveryMachine) {
  const std::vector<std::vector<double>> exchanges{{0, 0, 0, 0}, {1e-3, 4e-3, 6e-3, 8e-3}, {1e-3, 20e-3, 40e-3, 60e-3}};
  for (const auto& exchange_s : exchanges)
    for (const double contention : {1.0, 2.0})
      for (const double second : {1.0, 8.0})
        for (const double third : {1.0, 16.0})
          for (const size_t count : {size_t{2}, size_t{3}, size_t{4}}) {
            std::vector<SplitDevice> devices{mlp_device(1), mlp_device(second), mlp_device(third), mlp_device(2)};
            devices.resize(count);
            SimulatedRun run(devices, 64, exchange_s, contention);
            run.run(200);
            const double before_s = run.seconds_;
            run.run(1000);
            EXPECT_GE(run.best_s() * 1000 / (run.seconds_ - before_s), 0.97)
                << count << " devices, " << second << ", " << third << ", contention " << contention << ", exchange "
                << exchange_s[1];
          }
}

TEST(Participants, AreNotChangedByNoise) {
  SimulatedRun run({mlp_device(1), mlp_device(3)}, 64, {1e-3, 1e-3});
  const Participants fresh = *run.participants_;
  Participants noisy = fresh;
  const std::vector<int> shares = run.balancer_.shares();
  const double usual_s = run.step_s(shares, run.state_);
  const double alone_s = run.step_s({64, 0}, {1, 0});
  int changes = 0;
  for (int step = 0; step < 400; ++step) {
    const double wobble = 0.4 * ((step * 7) % 11 - 5) / 5.0;
    changes += noisy.observe({shares, {0, 0}, (1 + wobble) * std::min(usual_s * 1.1, alone_s)}).has_value();
  }
  EXPECT_EQ(changes, 0) << "steps scatter by 40 %, and alone is a little faster at most";
}

TEST(Participants, TakeADeviceBackThatHasBecomeFaster) {
  SimulatedRun run({mlp_device(1), mlp_device(8)}, 64, {1e-3, 14e-3});
  run.run(100);
  ASSERT_EQ(run.balancer_.shares()[1], 0);
  run.exchange_s_ = {1e-3, 1e-3};
  run.devices_[1] = mlp_device(1);
  run.run(4000);
  EXPECT_GT(run.balancer_.shares()[1], 20);
}

TEST(Participants, FollowADeviceThatBecomesSlow) {
  SimulatedRun run({mlp_device(1), mlp_device(1)}, 64, {1e-3, 5e-3});
  run.run(100);
  run.devices_[1] = mlp_device(30);
  run.run(200);
  EXPECT_LT(run.step_s(run.balancer_.shares(), run.state_), 1.03 * run.best_s());
}

TEST(Participants, MoveStateToWhereUpdatesHaveBecomeFaster) {
  SimulatedRun run({mlp_device(1), mlp_device(1)}, 64, {1e-3, 1e-3});
  run.run(50);
  run.devices_[1].update_s *= 3;
  run.run(100);
  EXPECT_NEAR(run.state_[0], 0.75, 0.02);
  ASSERT_FALSE(run.reasons_.empty());
  EXPECT_THAT(run.reasons_[0], HasSubstr("the state moves to where updates are faster"));
}

TEST(Participants, LeaveStateWhereItIsGiven) {
  const std::vector<SplitDevice> devices{mlp_device(1), mlp_device(8)};
  SplitTask task{.batch = 64};
  task.state_given = {0.5, 0.5};
  Participants participants({devices, task, {0.5, 0.5}, {"a", "b"}});
  for (int step = 0; step < 300; ++step)
    if (const auto change = participants.observe({{60, 4}, {8e-3, 64e-3}, 0.2})) {
      EXPECT_THAT(change->state, ElementsAre(0.5, 0.5));
    }
}

}  // namespace
}  // namespace remuda::balance
