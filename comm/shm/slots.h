// Slots: where each rank says how far it is, and how the others wait for it.
//
// A rank's steps are counted: step() publishes the next one, wait() returns when every rank has published it. The
// message of a call stands in the rank's slot before its first step. There are two places for it, used in turn: a rank
// writes the second-next message only after all have passed the step of the next, and so have read this one.
// Waiting spins for some microseconds and then sleeps in the kernel (futex), waking now and then to look for dead
// peers.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "comm/message.h"
#include "comm/peers.h"

namespace remuda::comm::shm {

struct alignas(128) Slot {
  std::atomic<uint32_t> steps;
  std::atomic<uint32_t> sleepers;  ///< ranks asleep until `steps` changes
  Message messages[2];
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

class Slots {
 public:
  /// `slots`: one per rank, zeroed, in memory that all ranks share; outlives this.
  Slots(Slot* slots, int rank, int size);

  /// Announces a call. Followed by step() and wait().
  void announce(const Message& message);
  /// Everything this rank has written is visible to those whose wait() has seen this step.
  void step();
  /// Until every rank is at this rank's step. Errors: a rank that is gone, or silent until the deadline.
  Result<void> wait(const Message& message, Peers& peers, double deadline_s);
  /// After the wait of the announcing step: whether all ranks announced the same.
  Result<void> agree(const Message& message) const;

 private:
  bool arrived(int peer) const;
  bool spin(int peer) const;
  Result<void> sleep_until_arrived(int peer, const Message& message, Peers& peers, double deadline_s);
  Result<void> look_for_the_dead(const Message& message, Peers& peers);

  Slot* slots_;
  int rank_;
  int size_;
  uint32_t step_ = 0;
  uint32_t parity_ = 0;
  bool may_spin_;
};

}  // namespace remuda::comm::shm
