#include "train/clock_offset.h"

#include <algorithm>
#include <array>
#include <limits>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "train/agreement.h"
#include "train/labels.h"

namespace remuda::train {
namespace {

constexpr size_t kBarriers = 16;  // the quickest decides; the first finds the ranks at different places

struct Seen {
  uint64_t boot = 0;  ///< 0: not known
  std::array<BarrierTimes, kBarriers> barriers;
};

/// The same for all processes that share a clock.
uint64_t boot_hash() {
  const auto id = read_text("/proc/sys/kernel/random/boot_id");
  return id ? XXH3_64bits(id->data(), id->size()) : 0;
}

}  // namespace

ClockOffset offset_between(std::span<const BarrierTimes> mine, std::span<const BarrierTimes> theirs) {
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  for (size_t i = 0; i < mine.size(); ++i) {
    low = std::max(low, theirs[i].entered_s - mine[i].left_s);
    high = std::min(high, theirs[i].left_s - mine[i].entered_s);
  }
  return {(low + high) / 2, (high - low) / 2};
}

Result<ClockOffset> clock_offset(comm::Communicator& communicator) {
  Seen mine{.boot = boot_hash(), .barriers = {}};
  for (BarrierTimes& barrier : mine.barriers) {
    barrier.entered_s = monotonic_s();
    REMUDA_TRY(communicator.barrier(label::kClock));
    barrier.left_s = monotonic_s();
  }
  REMUDA_ASSIGN(const std::vector<Seen> all, gather_all(communicator, mine, label::kClock));
  if (mine.boot != 0 && mine.boot == all[0].boot) return ClockOffset{};
  return offset_between(mine.barriers, all[0].barriers);
}

}  // namespace remuda::train
