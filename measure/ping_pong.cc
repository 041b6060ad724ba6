#include "measure/ping_pong.h"

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

/// The number that follows `last`. An error when none comes in time.
Result<uint64_t> next_number(const PingPongMessage& message, uint64_t last) {
  const double deadline_s = monotonic_s() + kPatience_s;
  do {
    for (int spin = 0; spin < kSpinsPerLook; ++spin) {
      if (const uint64_t number = message.number.load(std::memory_order_acquire); number != last) return number;
      relax();
    }
  } while (monotonic_s() < deadline_s);
  return failed("the other side of a latency measurement did not answer");
}

Result<void> send_and_wait(PingPongMessage& message, uint64_t number) {
  message.number.store(number, std::memory_order_release);
  REMUDA_TRY(next_number(message, number));
  return {};
}

Result<double> serve(PingPongMessage& message, double seconds) {
  uint64_t number = 0;
  std::vector<double> hops;
  const double end_s = monotonic_s() + seconds;
  while (hops.empty() || (monotonic_s() < end_s && hops.size() < kMostRuns)) {
    const double start_s = monotonic_s();
    for (int round = 0; round < kRoundsPerRun; ++round, number += 2) REMUDA_TRY(send_and_wait(message, number + 1));
    hops.push_back((monotonic_s() - start_s) / (2 * kRoundsPerRun));
  }
  REMUDA_TRY(send_and_wait(message, kEnd));
  return median(std::move(hops));
}

Result<double> answer(PingPongMessage& message) {
  uint64_t number = 0;
  for (;;) {
    REMUDA_ASSIGN(const uint64_t received, next_number(message, number));
    number = received == kEnd ? 0 : received + 1;
    message.number.store(number, std::memory_order_release);
    if (received == kEnd) return 0;
  }
}

}  // namespace

Result<double> ping_pong_s(PingPongMessage& message, int side, double seconds) {
  return side == 0 ? serve(message, seconds) : answer(message);
}

}  // namespace remuda::measure
