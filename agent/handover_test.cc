#include "agent/handover.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/testing/service_fixture.h"

namespace remuda::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int kNoPid = 1 << 30;  ///< more than a kernel has

class HandoverTest : public testing::Test {
 protected:
  HandoverTest() {
    for (Device& device : box_.devices) {
      device.memory_bytes = 40 * kGiB;
      device.status.memory_used_bytes = kGiB / 2;
      device.status.processes = std::vector<Process>{};
    }
    handover_.begin(state_, box_, now_s_);
    look();
  }

  void look() {
    handover_.reading_begins();
    handover_.look(box_, &health_, now_s_);
  }
  /// Job 1 of ada has had the first device, and a reading follows.
  void lease_ends() {
    lease();
    state_.leases.clear();
    handover_.see(state_, now_s_);
  }
  void lease() {
    state_.jobs = {{.id = 1, .user = "ada"}};
    state_.leases = {{.job = 1, .device = "gpu:0"}};
    handover_.see(state_, now_s_);
  }
  std::vector<std::string> held() const {
    std::vector<std::string> held;
    for (const place::Held& one : handover_.held(state_)) held.push_back(one.device + " " + one.barred);
    return held;
  }
  std::vector<std::string> faults() {
    std::vector<std::string> faults;
    for (const Handover::Fault& one : handover_.step(now_s_)) faults.push_back(one.device + " " + one.reason);
    return faults;
  }
  /// Looks each second until there is a fault, or the device is free.
  std::vector<std::string> wait() {
    for (int i = 0; i < 100 && !held().empty() && faults().empty(); ++i) {
      now_s_ += 1;
      look();
    }
    return faults();
  }
  void expect_probe_to_end() {
    for (int i = 0; i < 1000 && faults().empty() && !handover_.wants_reading(now_s_); ++i) ::usleep(5000);
  }
  Process process(int pid, int64_t bytes) const {
    Process one;
    one.pid = pid, one.type = "compute", one.memory_bytes = bytes;
    return one;
  }

  Inventory box_ = box_of(2);
  Status& status_ = box_.devices[0].status;
  pool::PoolState state_;
  policy::Health health_;
  double now_s_ = 1000;
  Handover handover_ = Handover(IdleMemory(), start_probe);
};

TEST_F(HandoverTest, HoldsADeviceBackUntilAReadingFindsItClean) {
  EXPECT_THAT(held(), IsEmpty());
  lease();
  EXPECT_FALSE(handover_.wants_reading(now_s_));
  handover_.reading_begins();  // before the lease ends
  state_.leases.clear();
  EXPECT_THAT(held(), ElementsAre("gpu:0 is looked over after job 1 of ada")) << "also in the change that ends it";
  handover_.see(state_, now_s_);
  EXPECT_TRUE(handover_.wants_reading(now_s_));
  EXPECT_TRUE(handover_.is_new());
  handover_.look(box_, &health_, now_s_);
  EXPECT_THAT(held(), ElementsAre("gpu:0 is looked over after job 1 of ada")) << "an old reading";
  look();
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_THAT(faults(), IsEmpty());
  EXPECT_FALSE(handover_.wants_reading(now_s_));
}

TEST_F(HandoverTest, MemoryThatStaysIsAFaultOnceTheDriverHasHadItsTime) {
  lease_ends();
  status_.memory_used_bytes = 3 * kGiB;
  look();
  EXPECT_THAT(held(), ElementsAre("gpu:0 is not clean yet (2.5 GiB of its memory are in use, and no process has them) "
                                  "after job 1 of ada"));
  EXPECT_FALSE(handover_.is_new());
  EXPECT_THAT(faults(), IsEmpty());
  EXPECT_THAT(wait(),
              ElementsAre("gpu:0 after job 1 of ada: 2.5 GiB of its memory are in use, and no process has them"));
  EXPECT_GE(now_s_, 1000 + kHandoverPatience_s);
  handover_.drained("gpu:0");
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(HandoverTest, MemoryThatGoesInTimeIsNone) {
  lease_ends();
  status_.memory_used_bytes = 3 * kGiB;
  look();
  status_.memory_used_bytes = kGiB / 2;
  EXPECT_THAT(wait(), IsEmpty());
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(HandoverTest, WhatAScreenTakesIsItsOwn) {
  Process screen = process(::getpid(), 4 * kGiB);
  screen.type = "graphics";
  status_.processes = std::vector<Process>{screen};
  status_.memory_used_bytes = 4 * kGiB + kGiB / 2;
  lease_ends();
  look();
  EXPECT_THAT(held(), IsEmpty());
  screen.memory_bytes = Missing{MissingReason::denied, "the driver does not tell"};
  status_.processes = std::vector<Process>{screen};
  health_ = {.probe = "exit 3"};
  lease_ends();
  look();
  expect_probe_to_end();
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("its health probe exited with status 3")))
      << "it is probed as others are";
}

TEST_F(HandoverTest, AReadingFromBeforeTheProbeHasEndedTellsNothing) {
  health_ = {.probe = "exit 0"};
  lease_ends();
  look();
  handover_.reading_begins();
  expect_probe_to_end();
  handover_.look(box_, &health_, now_s_);
  EXPECT_THAT(held(), ElementsAre("gpu:0 is looked over after job 1 of ada"));
  look();
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(HandoverTest, AProcessOnItHoldsItForAsLongAsItRuns) {
  status_.processes = std::vector<Process>{process(::getpid(), kGiB)};
  status_.memory_used_bytes = 2 * kGiB;
  lease_ends();
  look();
  EXPECT_THAT(held(), IsEmpty()) << "others see that the process holds it";
  EXPECT_FALSE(handover_.wants_reading(now_s_ + 1)) << "whoever waits for it has the machine read";
  now_s_ += 10 * kHandoverPatience_s;
  look();
  EXPECT_THAT(faults(), IsEmpty());
  status_.processes = std::vector<Process>{};
  look();
  EXPECT_THAT(held(), ElementsAre(HasSubstr("1.5 GiB of its memory")));
}

TEST_F(HandoverTest, AProcessThatTheDriverDoesNotLetGoOfIsAFault) {
  status_.processes = std::vector<Process>{process(kNoPid, kGiB)};
  lease_ends();
  EXPECT_THAT(wait(), ElementsAre("gpu:0 after job 1 of ada: process 1073741824, which has ended, is still on it"));
}

TEST_F(HandoverTest, AFatalErrorIsAFault) {
  lease_ends();
  status_.xid = 79;
  EXPECT_THAT(wait(), ElementsAre("gpu:0 after job 1 of ada: it had a fatal error, the driver's code 79"));
}

TEST_F(HandoverTest, ADeviceThatIsGoneIsWaitedForWithoutHaste) {
  lease_ends();
  const Inventory whole = std::exchange(box_, {});
  look();
  EXPECT_FALSE(handover_.is_new());
  EXPECT_FALSE(handover_.wants_reading(now_s_ + 1000));
  EXPECT_THAT(held(), ElementsAre(StartsWith("gpu:0 ")));
  box_ = whole;
  look();
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(HandoverTest, TheProbeSeesTheDeviceAndEndsWell) {
  const ScratchFolder folder;
  health_.probe = "echo $REMUDA_DEVICES >" + folder.path("seen");
  lease_ends();
  look();
  EXPECT_THAT(held(), ElementsAre(StartsWith("gpu:0 "))) << "it runs";
  expect_probe_to_end();
  EXPECT_THAT(held(), ElementsAre(StartsWith("gpu:0 "))) << "what it has left is looked at";
  look();
  EXPECT_THAT(held(), IsEmpty());
  EXPECT_EQ(folder.read("seen"), "gpu:0\n");
}

TEST_F(HandoverTest, AProbeThatFailsIsAFaultWithItsLastWords) {
  health_.probe = "echo begins; echo the fan stands still >&2; exit 3";
  lease_ends();
  look();
  expect_probe_to_end();
  EXPECT_THAT(faults(),
              ElementsAre("gpu:0 after job 1 of ada: its health probe exited with status 3: the fan stands still"));
  EXPECT_FALSE(handover_.wants_reading(now_s_ + 100));
}

TEST_F(HandoverTest, AProbeThatDoesNotEndIsKilled) {
  health_ = {.probe = "echo $$; exec sleep 1000", .probe_timeout_s = 5};
  lease_ends();
  look();
  EXPECT_THAT(faults(), IsEmpty());
  ::usleep(200'000);
  EXPECT_LE(handover_.next_s(now_s_), now_s_ + 1);
  now_s_ += 6;
  const auto found = faults();
  ASSERT_THAT(found, ElementsAre(StartsWith("gpu:0 after job 1 of ada: its health probe did not end in time: ")));
  const int pid = std::stoi(found[0].substr(found[0].rfind(' ')));
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(HandoverTest, AnAgentThatStartsLooksAtAllThatNobodyHas) {
  status_.memory_used_bytes = 3 * kGiB;
  state_.jobs = {{.id = 1, .user = "ada"}};
  state_.leases = {{.job = 1, .device = "gpu:1"}};
  Handover next(IdleMemory(), start_probe);
  next.begin(state_, box_, now_s_);
  ASSERT_EQ(next.held(state_).size(), 1U);
  EXPECT_EQ(next.held(state_)[0].device, "gpu:0");
  EXPECT_EQ(next.held(state_)[0].barred, "is looked over at the agent's start");
  state_.leases.clear();
  state_.drains = {{.device = "gpu:0", .reason = "it is broken"}};
  Handover third(IdleMemory(), start_probe);
  third.begin(state_, box_, now_s_);
  ASSERT_EQ(third.held(state_).size(), 1U);
  EXPECT_EQ(third.held(state_)[0].device, "gpu:1") << "a drained one stays so anyway";
}

TEST_F(HandoverTest, NothingIsCleanWhileThePolicyCannotBeRead) {
  lease_ends();
  handover_.reading_begins();
  handover_.look(box_, nullptr, now_s_);
  EXPECT_THAT(held(), ElementsAre(StartsWith("gpu:0 ")));
  EXPECT_FALSE(handover_.is_new());
}

TEST(Handover, ChecksNothingUnlessAsked) {
  Handover none;
  pool::PoolState state;
  state.leases = {{.job = 1, .device = "gpu:0"}};
  none.see(state, 0);
  EXPECT_THAT(none.held({}), IsEmpty());
  EXPECT_EQ(none.next_s(0), kNever_s);
}

}  // namespace
}  // namespace remuda::agent
