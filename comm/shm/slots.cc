#include "comm/shm/slots.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

namespace remuda::comm::shm {
namespace {

constexpr double kSpinS = 20e-6;                  // longer than a wake-up takes, too short to be noticed
constexpr timespec kSleep{0, 100 * 1000 * 1000};  // how soon a dead peer is noticed

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &kSleep, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool reached(uint32_t steps, uint32_t wanted) { return static_cast<int32_t>(steps - wanted) >= 0; }

}  // namespace

// Does not spin with fewer cores than ranks, as that would keep the awaited rank from running.
Slots::Slots(Slot* slots, int rank, int size, uint32_t steps)
    : slots_(slots), rank_(rank), size_(size), step_(steps), may_spin_(::sysconf(_SC_NPROCESSORS_ONLN) >= size) {}

void Slots::announce(const Call& call) {
  parity_ ^= 1;
  slots_[rank_].calls[parity_] = call;
}

// The order of all (store steps, read sleepers) here against (count as sleeper, read steps) in the kernel's wait below
// makes sure that a sleeper is woken or does not fall asleep.
void Slots::step() {
  Slot& slot = slots_[rank_];
  slot.steps.store(++step_, std::memory_order_seq_cst);
  if (slot.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(slot.steps);
}

bool Slots::arrived(int peer) const { return reached(slots_[peer].steps.load(std::memory_order_acquire), step_); }

bool Slots::spin(int peer) const {
  if (arrived(peer)) return true;
  if (!may_spin_) return false;
  const double end_s = monotonic_s() + kSpinS;
  do {
    for (int i = 0; i < 32; ++i, relax())
      if (arrived(peer)) return true;
  } while (monotonic_s() < end_s);
  return false;
}

Result<void> Slots::check_for_dead_peers(const Call& call, Peers& peers) {
  REMUDA_TRY(peers.check(call.sequence));
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && peers.gone(peer) && !arrived(peer)) return tl::unexpected(peers.cause(peer, call));
  return {};
}

Result<void> Slots::sleep_until_arrived(int peer, const Call& call, Peers& peers, double deadline_s) {
  Slot& slot = slots_[peer];
  for (;;) {
    slot.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t steps = slot.steps.load(std::memory_order_seq_cst);
    if (!reached(steps, step_)) futex_wait(slot.steps, steps);
    slot.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (arrived(peer)) return {};
    REMUDA_TRY(check_for_dead_peers(call, peers));
    if (monotonic_s() >= deadline_s) return tl::unexpected(lost_rank(peer, "did not come in time", call));
  }
}

Result<void> Slots::wait(const Call& call, Peers& peers, double deadline_s) {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && !spin(peer)) REMUDA_TRY(sleep_until_arrived(peer, call, peers, deadline_s));
  return {};
}

Result<void> Slots::check_same(const Call& call) const {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) REMUDA_TRY(comm::check_same(rank_, call, peer, slots_[peer].calls[parity_]));
  return {};
}

}  // namespace remuda::comm::shm
