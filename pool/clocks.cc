#include "pool/clocks.h"

#include <cmath>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <string_view>
#include <sys/stat.h>

#include "base/clock.h"
#include "process/process_id.h"

namespace remuda::pool {
namespace {

/// What the daemons that keep a clock right take back by slowing it is less.
constexpr double kSet_s = 1;

/// Without for whom it was.
std::string_view start_of(std::string_view boot) { return boot.substr(0, boot.rfind('-')); }

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
  return {remuda::wall_s(), static_cast<double>(since.tv_sec) + static_cast<double>(since.tv_nsec) * kNanoseconds,
          boot};
}

void follow_clocks(PoolState& state, const Clocks& clocks) {
  const double ahead_s = clocks.wall_s - clocks.boot_s;
  const auto is_followed = [&](const Job& job) {
    return job.state == JobState::running && job.clock.boot == clocks.boot;
  };
  double set_by_s = 0;
  for (const Job& job : state.jobs)
    if (const double by_s = ahead_s - job.clock.ahead_s; is_followed(job) && std::abs(by_s) > std::abs(set_by_s))
      set_by_s = by_s;
  if (std::abs(set_by_s) < kSet_s) return;
  std::map<int64_t, double> moved_by_s;  // all at once, so that what is moved with them is moved once
  for (const Job& job : state.jobs) {
    const bool runs = is_followed(job);
    if (!runs && job.state != JobState::waiting) continue;
    Job& moved = state.jobs.edit(job);
    const double by_s = runs ? ahead_s - job.clock.ahead_s : set_by_s;
    moved.submitted_s += by_s;
    if (!runs) continue;
    moved.started_s += by_s;
    moved.clock.ahead_s = ahead_s;
    moved_by_s[job.id] = by_s;
  }
  for (Lease& lease : state.leases) {
    const auto found = moved_by_s.find(lease.job);
    if (found == moved_by_s.end()) continue;
    lease.since_s += found->second;
    if (lease.until_s > 0) lease.until_s += found->second;
  }
  for (Usage& usage : state.usage) usage.at_s += set_by_s;
}

void note_clocks(PoolState& state, const Clocks& clocks) {
  for (const Job& job : state.jobs)
    if (job.state == JobState::running && start_of(job.clock.boot) != start_of(clocks.boot))
      state.jobs.edit(job).clock = {clocks.boot, clocks.wall_s - clocks.boot_s};
}

double began_s(const PoolState& state, const Lease& lease) {
  const Job* const job = state.find(lease.job);
  return lease.since_s - (job ? job->clock.ahead_s : 0);
}

bool is_same_beginning(double one_s, double other_s) {
  constexpr double kAlike_s = 0.01;
  return std::abs(one_s - other_s) < kAlike_s;
}

}  // namespace remuda::pool
