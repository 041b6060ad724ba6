// Slots: where each rank publishes its progress, and how the others wait for it.
//
// A rank's steps are counted: step() publishes the next one, wait() returns when every rank has published it. A rank
// announces a call by writing it into its slot before the call's first step. There are two places for calls, used in
// turn: a rank announces the call after the next one only when all ranks have passed a step of the next one, and so
// have read this one. Waiting spins for some microseconds and then sleeps in the kernel (futex), waking from time to
// time to check for dead peers.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "comm/call.h"
#include "comm/peers.h"

namespace remuda::comm::shm {

struct alignas(128) Slot {
  std::atomic<uint32_t> steps;
  std::atomic<uint32_t> sleepers;  ///< ranks asleep until `steps` changes
  Call calls[2];
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

class Slots {
 public:
  /// `slots`: one for each of `ranks`, in memory that these share; outlives this. This rank has number `mine` among
  /// them. `steps`: the current count, the same in all slots.
  Slots(Slot* slots, std::vector<int> ranks, int mine, uint32_t steps = 0);

  /// Announces a call. Followed by step() and wait().
  void announce(const Call& call);
  /// Everything this rank has written is visible to those whose wait() has seen this step.
  void step();
  /// Waits until every rank has reached this rank's step. Errors: a rank that is gone, or silent until the deadline.
  Result<void> wait(const Call& call, Peers& peers, double deadline_s);
  /// After the wait of the announcing step: whether all ranks announced the same.
  Result<void> check_same(const Call& call) const;

 private:
  bool arrived(int number) const;
  bool spin(int number) const;
  Result<void> sleep_until_arrived(int number, const Call& call, Peers& peers, double deadline_s);
  Result<void> check_for_dead_peers(const Call& call, Peers& peers);
  int size() const { return static_cast<int>(ranks_.size()); }
  int rank_of(int number) const { return ranks_[static_cast<size_t>(number)]; }

  Slot* slots_;
  std::vector<int> ranks_;
  int mine_;
  uint32_t step_;
  uint32_t parity_ = 0;
  bool may_spin_;
};

}  // namespace remuda::comm::shm
