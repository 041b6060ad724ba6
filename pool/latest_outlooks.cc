#include "pool/latest_outlooks.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "base/clock.h"

namespace remuda::pool {
namespace {

/// Two pools for which it is the same, but by the passing of time, have the same one. In a pass over the jobs, as there
/// may be thousands.
std::string mark_of(const Scene& scene) {
  std::string mark;
  const auto into = std::back_inserter(mark);
  size_t waiting = 0, paused = 0, leaving = 0;
  int64_t priorities = 0;
  for (const Job& job : scene.state.jobs) {
    leaving += job.cancelled || job.preempted_by != 0 || !job.evicted.empty();
    if (job.state != JobState::waiting) continue;
    ++waiting, paused += job.paused, priorities += job.priority;
  }
  fmt::format_to(into, "{} {} {} {} {}", scene.state.next_job, waiting, paused, leaving, priorities);
  for (const Lease& lease : scene.state.leases)
    fmt::format_to(into, "\n{} {} {} {}", lease.job, lease.device, lease.share, lease.until_s);
  for (const place::Held& held : scene.held) fmt::format_to(into, "\n{} {} {}", held.device, held.share, held.barred);
  return mark;
}

}  // namespace

const std::map<int64_t, Outlook>& LatestOutlooks::of(const Scene& scene, double steady_s) {
  if (made_ > 0 && steady_s < due_s_) return latest_;
  std::string mark = mark_of(scene);
  if (made_ > 0 && mark == seen_ && steady_s < taken_s_ + kOldest_s) return latest_;
  const double began_s = monotonic_s();
  latest_ = outlooks(scene, kMost);
  seen_ = std::move(mark);
  taken_s_ = steady_s;
  due_s_ = steady_s + rest_per_work_ * (monotonic_s() - began_s);
  ++made_;
  return latest_;
}

}  // namespace remuda::pool
