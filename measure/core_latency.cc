#include "measure/core_latency.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "measure/repeat.h"

namespace remuda::measure {
namespace {

constexpr double kPatience_s = 10;
constexpr int kSpinsPerLook = 4096;
constexpr int kRoundsPerRun = 50;
constexpr size_t kMostRuns = 100'000;
constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// The turn that comes after `last`; nothing when none comes in time.
Result<uint64_t> next_turn(const SharedTurn& shared, uint64_t last) {
  const double deadline_s = monotonic_s() + kPatience_s;
  do {
    for (int spin = 0; spin < kSpinsPerLook; ++spin) {
      if (const uint64_t turn = shared.turn.load(std::memory_order_acquire); turn != last) return turn;
      relax();
    }
  } while (monotonic_s() < deadline_s);
  return failed("the other side of a latency measurement did not answer");
}

Result<void> send_and_wait(SharedTurn& shared, uint64_t turn) {
  shared.turn.store(turn, std::memory_order_release);
  REMUDA_TRY(next_turn(shared, turn));
  return {};
}

Result<double> lead(SharedTurn& shared, double seconds) {
  uint64_t turn = 0;
  std::vector<double> hops;
  const double end_s = monotonic_s() + seconds;
  while (hops.empty() || (monotonic_s() < end_s && hops.size() < kMostRuns)) {
    const double start_s = monotonic_s();
    for (int round = 0; round < kRoundsPerRun; ++round, turn += 2) REMUDA_TRY(send_and_wait(shared, turn + 1));
    hops.push_back((monotonic_s() - start_s) / (2 * kRoundsPerRun));
  }
  REMUDA_TRY(send_and_wait(shared, kEnd));
  return median(std::move(hops));
}

Result<double> respond(SharedTurn& shared) {
  uint64_t turn = 0;
  for (;;) {
    REMUDA_ASSIGN(const uint64_t received, next_turn(shared, turn));
    turn = received == kEnd ? 0 : received + 1;
    shared.turn.store(turn, std::memory_order_release);
    if (received == kEnd) return 0;
  }
}

}  // namespace

Result<double> core_latency_s(SharedTurn& shared, int side, double seconds) {
  return side == 0 ? lead(shared, seconds) : respond(shared);
}

}  // namespace remuda::measure
