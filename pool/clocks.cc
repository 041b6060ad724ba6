#include "pool/clocks.h"

#include <cmath>
#include <ctime>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "process/process_id.h"

namespace remuda::pool {
namespace {

/// What the daemons that keep a clock right take back by slowing it is less.
constexpr double kSet_s = 1;

}  // namespace

Clocks Clocks::now() {
  static const std::string boot = [] {
    struct stat own{};
    const bool is_known = ::stat("/proc/self/ns/time", &own) == 0;
    return fmt::format("{}-{}", process::own_process_id().boot_id, is_known ? own.st_ino : 0);
  }();
  constexpr double kNanoseconds = 1e-9;
  timespec since{};
  ::clock_gettime(CLOCK_BOOTTIME, &since);
  return {remuda::wall_s(), static_cast<double>(since.tv_sec) + static_cast<double>(since.tv_nsec) * kNanoseconds, boot};
}

void follow_clocks(PoolState& state, const Clocks& clocks) {
  const double ahead_s = clocks.wall_s - clocks.boot_s;
  double set_by_s = 0;
  for (const Job& job : state.jobs) {
    if (job.state != JobState::running || job.clock.boot != clocks.boot) continue;
    const double by_s = ahead_s - job.clock.ahead_s;
    if (std::abs(by_s) < kSet_s) continue;
    Job& moved = state.jobs.edit(job);
    moved.clock.ahead_s = ahead_s;
    moved.submitted_s += by_s;
    moved.started_s += by_s;
    for (Lease& lease : state.leases) {
      if (lease.job != job.id) continue;
      lease.since_s += by_s;
      if (lease.until_s > 0) lease.until_s += by_s;
    }
    set_by_s = by_s;
  }
  for (Usage& usage : state.usage) usage.at_s += set_by_s;
}

void note_clocks(PoolState& state, const Clocks& clocks) {
  for (const Job& job : state.jobs)
    if (job.state == JobState::running && job.clock.boot.empty())
      state.jobs.edit(job).clock = {clocks.boot, clocks.wall_s - clocks.boot_s};
}

}  // namespace remuda::pool
