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
Slots::Slots(Slot* slots, std::vector<int> ranks, int mine, uint32_t steps)
    : slots_(slots),
      ranks_(std::move(ranks)),
      mine_(mine),
      step_(steps),
      may_spin_(::sysconf(_SC_NPROCESSORS_ONLN) >= size()) {}

void Slots::announce(const Call& call) {
  parity_ ^= 1;
  slots_[mine_].calls[parity_] = call;
}

// The order of all (store steps, read sleepers) here against (count as sleeper, read steps) in the kernel's wait below
// makes sure that a sleeper is woken or does not fall asleep.
void Slots::step() {
  Slot& slot = slots_[mine_];
  slot.steps.store(++step_, std::memory_order_seq_cst);
  if (slot.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(slot.steps);
}

bool Slots::arrived(int number) const { return reached(slots_[number].steps.load(std::memory_order_acquire), step_); }

bool Slots::spin(int number) const {
  if (arrived(number)) return true;
  if (!may_spin_) return false;
  const double end_s = monotonic_s() + kSpinS;
  do {
    for (int i = 0; i < 32; ++i, relax())
      if (arrived(number)) return true;
  } while (monotonic_s() < end_s);
  return false;
}

Result<void> Slots::check_for_dead_peers(const Call& call, Peers& peers) {
  REMUDA_TRY(peers.check(call.sequence));
  for (int number = 0; number < size(); ++number)
    if (number != mine_ && peers.gone(rank_of(number)) && !arrived(number))
      return tl::unexpected(peers.cause(rank_of(number), call));
  return {};
}

Result<void> Slots::sleep_until_arrived(int number, const Call& call, Peers& peers, double deadline_s) {
  Slot& slot = slots_[number];
  for (;;) {
    slot.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t steps = slot.steps.load(std::memory_order_seq_cst);
    if (!reached(steps, step_)) futex_wait(slot.steps, steps);
    slot.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (arrived(number)) return {};
    REMUDA_TRY(check_for_dead_peers(call, peers));
    if (monotonic_s() >= deadline_s) return tl::unexpected(lost_rank(rank_of(number), "did not come in time", call));
  }
}

Result<void> Slots::wait(const Call& call, Peers& peers, double deadline_s) {
  for (int number = 0; number < size(); ++number)
    if (number != mine_ && !spin(number)) REMUDA_TRY(sleep_until_arrived(number, call, peers, deadline_s));
  return {};
}

Result<void> Slots::check_same(const Call& call) const {
  for (int number = 0; number < size(); ++number)
    if (number != mine_)
      REMUDA_TRY(comm::check_same(rank_of(mine_), call, rank_of(number), slots_[number].calls[parity_]));
  return {};
}

}  // namespace remuda::comm::shm
