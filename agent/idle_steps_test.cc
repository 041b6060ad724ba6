#include "agent/idle_steps.h"

#include <gmock/gmock.h>

#include "agent/testing/service_fixture.h"

namespace remuda::agent {
namespace {

using pool::IdleStep;
using testing::AllOf;
using testing::HasSubstr;

class IdleStepsTest : public ServiceTest {
 protected:
  /// As the loop does, for so long: the machine is read when it is to be.
  void pass(double seconds) {
    for (const double end_s = now_s_ + seconds; now_s_ < end_s;) {
      now_s_ += 1;
      service_->step(now_s_);
      if (service_->wants_reading(now_s_)) read();
    }
  }
  void read() {
    service_->reading_has_begun();
    service_->take_reading(*pool::MachineView::open(
                               pool_, [&] { return Result<Inventory>(box_); },
                               [&]() -> Result<pool::Policy> {
                                 return policy_ ? Result<pool::Policy>(*policy_) : failed("its file is wrong");
                               },
                               false),
                           now_s_);
    ++readings_;
  }
  static policy::Policy idle_policy() {
    policy::Policy policy;
    policy.idle = {.warn_after_s = 600, .signal_after_s = 900, .release_after_s = 1200, .exempt = {}};
    return policy;
  }

  Inventory box_ = box_of(2);
  std::optional<policy::Policy> policy_ = idle_policy();
  int readings_ = 0;
};

TEST_F(IdleStepsTest, AreTakenAndEndAJobWhoseKeeperDoesNot) {
  const auto keeper = process::ChildProcess::spawn({.argv = {"sleep", "1000"}});
  ASSERT_TRUE(keeper);
  const int64_t job = submit(caller_for(*keeper));
  box_.devices[0].status.busy = box_.devices[1].status.busy = 0.0;
  read();
  pass(650);
  EXPECT_EQ(find(job)->idle.step, IdleStep::warned);
  EXPECT_THAT(find(job)->idle.text, HasSubstr("gpu:0 busy for 0 % of 10 min"));
  pass(300);
  EXPECT_EQ(find(job)->idle.step, IdleStep::signalled);
  pass(300);
  ASSERT_TRUE(ends(job));
  EXPECT_THAT(find(job)->why,
              AllOf(HasSubstr("was told to end: gpu:0 busy"), HasSubstr("did not end in its grace time")));
}

TEST_F(IdleStepsTest, TheMachineIsReadForThemOnlyWhereThereAreSome) {
  policy_ = policy::Policy();
  read();
  const auto keeper = process::ChildProcess::spawn({.argv = {"sleep", "1000"}});
  ASSERT_TRUE(keeper);
  pass(100);
  const int64_t job = submit(caller_for(*keeper));
  pass(100);
  const int before = readings_;
  pass(1000);
  EXPECT_EQ(readings_, before) << "an agent without work does nothing";
  EXPECT_EQ(find(job)->idle, pool::IdleNotice{});
}

TEST_F(IdleStepsTest, BeginWhereThePolicyIsChangedWhileNobodyAsksForAnything) {
  policy_ = policy::Policy();
  read();
  const auto keeper = process::ChildProcess::spawn({.argv = {"sleep", "1000"}});
  ASSERT_TRUE(keeper);
  box_.devices[0].status.busy = box_.devices[1].status.busy = 0.0;
  const int64_t job = submit(caller_for(*keeper));
  pass(100);
  policy_ = idle_policy();
  EXPECT_LE(service_->next_s(now_s_), now_s_ + 10) << "the loop wakes up for it";
  pass(650);
  EXPECT_EQ(find(job)->idle.step, IdleStep::warned);
}

TEST_F(IdleStepsTest, TheMachineIsReadTheOftenerTheShorterTheWindow) {
  policy::Idle idle = idle_policy().idle;
  pool::PoolState pool;
  EXPECT_EQ(IdleSteps::every_s(idle, pool), kNever_s) << "nobody holds a device";
  pool.leases = {{.job = 7, .device = "gpu:0"}};
  EXPECT_EQ(IdleSteps::every_s(idle, pool), 10);
  idle.warn_after_s = 120;
  EXPECT_EQ(IdleSteps::every_s(idle, pool), 2);
}

TEST_F(IdleStepsTest, NothingIsTakenBackWhereThePolicyCannotBeRead) {
  const auto keeper = process::ChildProcess::spawn({.argv = {"sleep", "1000"}});
  ASSERT_TRUE(keeper);
  box_.devices[0].status.busy = box_.devices[1].status.busy = 0.0;
  const int64_t job = submit(caller_for(*keeper));
  read();
  pass(650);
  ASSERT_EQ(find(job)->idle.step, IdleStep::warned);
  policy_.reset();
  pass(2000);
  EXPECT_EQ(find(job)->idle.step, IdleStep::warned);
}

}  // namespace
}  // namespace remuda::agent
