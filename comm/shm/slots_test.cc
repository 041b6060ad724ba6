#include "comm/shm/slots.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "comm/testing/socket_pair.h"
#include "comm/wire.h"

namespace remuda::comm::shm {
namespace {

using testing::HasSubstr;

constexpr uint32_t kNearlyOver = std::numeric_limits<uint32_t>::max() - 50;

/// The slots of two ranks that are threads, and the connection between them.
class SlotsTest : public testing::Test {
 protected:
  Peers peers(int rank) {
    std::vector<Link> control(2);
    control[1 - rank] = std::move(rank == 0 ? pair_.first : pair_.second);
    return {rank, std::move(control)};
  }
  static Call call(uint64_t number) { return {.label = static_cast<uint32_t>(number * 3), .sequence = number}; }

  std::array<Slot, 2> slots_{};
  SocketPair pair_;
};

/// What is written before step() is read after wait(), and not before all have stepped; counters may overflow.
TEST_F(SlotsTest, CarryWhatWasWrittenBeforeTheStepToThoseWhoHaveWaited) {
  for (auto& slot : slots_) slot.steps = kNearlyOver;
  constexpr int kCalls = 3000;
  std::array<int, 2> written{};  // plain: only the slots put an order between its writer and its reader
  const auto run = [&](int rank) {
    Peers peers = this->peers(rank);
    Slots slots(slots_.data(), {0, 1}, rank, kNearlyOver);
    for (int i = 1; i <= kCalls; ++i) {
      written[rank] = i;
      slots.announce(call(i));
      slots.step();
      ASSERT_TRUE(slots.wait(call(i), peers, deadline_after(60)));
      ASSERT_TRUE(slots.check_same(call(i)));
      ASSERT_EQ(written[1 - rank], i);
      slots.step();
      ASSERT_TRUE(slots.wait(call(i), peers, deadline_after(60)));
    }
  };
  std::jthread other([&] { run(1); });
  run(0);
}

/// Calls of one step each: a rank may announce the next call while the other still reads this one.
TEST_F(SlotsTest, ACallIsReadWholeWhileTheNextOneIsAnnounced) {
  constexpr int kCalls = 20000;
  const auto run = [&](int rank) {
    Peers peers = this->peers(rank);
    Slots slots(slots_.data(), {0, 1}, rank);
    for (int i = 1; i <= kCalls; ++i) {
      slots.announce(call(i));
      slots.step();
      ASSERT_TRUE(slots.wait(call(i), peers, deadline_after(60)));
      const auto same = slots.check_same(call(i));
      ASSERT_TRUE(same) << same.error().message;
    }
  };
  std::jthread other([&] { run(1); });
  run(0);
}

TEST_F(SlotsTest, DifferentCallsAreNamed) {
  const auto run = [&](int rank) {
    Peers peers = this->peers(rank);
    Slots slots(slots_.data(), {0, 1}, rank);
    slots.announce(call(1 + rank));
    slots.step();
    ASSERT_TRUE(slots.wait(call(1 + rank), peers, deadline_after(60)));
    const auto same = slots.check_same(call(1 + rank));
    ASSERT_FALSE(same);
    EXPECT_THAT(same.error().message, HasSubstr("rank 1 is at barrier #2 (label 6"));
    slots.step();
    static_cast<void>(slots.wait(call(1 + rank), peers, deadline_after(60)));
  };
  std::jthread other([&] { run(1); });
  run(0);
}

TEST_F(SlotsTest, ARankThatIsNotThereInTimeIsNamed) {
  Peers peers = this->peers(0);
  Slots slots(slots_.data(), {0, 1}, 0);
  slots.announce(call(1));
  slots.step();
  const auto waited = slots.wait(call(1), peers, deadline_after(0.01));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().kind, ErrorKind::lost_peer);
  EXPECT_EQ(waited.error().peer, 1);
  EXPECT_THAT(waited.error().message, HasSubstr("rank 1 did not come in time during barrier #1"));
  EXPECT_EQ(slots_[1].sleepers, 0u) << "nobody sleeps there any more";
}

TEST_F(SlotsTest, ARankThatIsGoneIsNamedUnlessItHadCome) {
  Peers peers = this->peers(0);
  Slots slots(slots_.data(), {0, 1}, 0);
  pair_.second.reset();
  slots.step();
  slots_[1].steps = 1;
  EXPECT_TRUE(slots.wait(call(1), peers, deadline_after(60))) << "it did its part before it ended";
  slots.step();
  const auto waited = slots.wait(call(2), peers, deadline_after(60));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().peer, 1);
  EXPECT_THAT(waited.error().message, HasSubstr("rank 1 went away"));
}

TEST_F(SlotsTest, AStepWakesASleeperAtOnce) {
  Slots slots(slots_.data(), {0, 1}, 0);
  std::atomic<bool> asleep = false;
  bool timed_out = false;
  slots_[0].sleepers = 1;
  std::jthread sleeper([&] {
    const timespec patience{30, 0};
    asleep = true;
    const long woken = ::syscall(SYS_futex, &slots_[0].steps, FUTEX_WAIT, 0, &patience, nullptr, 0);
    timed_out = woken != 0 && errno == ETIMEDOUT;
  });
  while (!asleep) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  slots.step();
  sleeper.join();
  EXPECT_FALSE(timed_out);
}

/// Rank 2 did its part and ended; rank 1 is only late.
TEST(Slots, ARankThatWentAfterItsPartEndsNobodysWait) {
  std::array<Slot, 3> shared{};
  SocketPair first, second;
  std::vector<Link> control(3);
  control[1] = std::move(first.first);
  control[2] = std::move(second.first);
  second.second.reset();
  shared[2].steps = 1;
  Peers peers(0, std::move(control));
  Slots slots(shared.data(), {0, 1, 2}, 0);
  std::jthread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // longer than it takes to check for dead peers
    shared[1].steps = 1;
  });
  slots.step();
  const auto waited = slots.wait({.sequence = 1}, peers, deadline_after(60));
  EXPECT_TRUE(waited) << waited.error().message;
}

}  // namespace
}  // namespace remuda::comm::shm
