#include "monitor/idle_window.h"

#include <algorithm>

namespace remuda::monitor {
namespace {

/// A notebook that nobody uses takes less of the host than this, and a loop that decodes pictures more.
constexpr double kAsleepCores = 0.05;
/// A process that does nothing is in an uninterruptible wait now and then, too.
constexpr double kOften = 0.2;
constexpr double kShortestGap_s = 5;

}  // namespace

void IdleWindow::add(double now_s, const Seen& seen) {
  const bool has_gap = now_s < last_s_ || now_s - last_s_ > std::max(length_s_ / 10, kShortestGap_s);
  if (since_s_ < 0 || has_gap) {
    parts_.fill({});
    since_s_ = now_s;
  }
  last_s_ = now_s;
  const auto number = static_cast<int64_t>(now_s * kParts / length_s_);
  Part& part = parts_[static_cast<size_t>(number) % kParts];
  if (part.number != number) part = {.number = number};
  ++part.readings;
  part.input += seen.waits_for_input;
  part.hidden += seen.hides_input;
  part.missed += seen.misses_some;
  part.peer += seen.waits_for_peer;
  if (seen.busy >= 0) part.busy += seen.busy, ++part.busy_known;
  if (seen.cores >= 0) part.cores += seen.cores, ++part.cores_known;
  if (seen.processes >= 0) part.with_processes += seen.processes > 0, ++part.processes_known;
}

/// All parts weigh the same, however many readings each has; where readings are further apart than parts, some have
/// none.
double IdleWindow::busy() const {
  if (!is_whole()) return -1;
  const auto newest = static_cast<int64_t>(last_s_ * kParts / length_s_);
  double sum = 0;
  int known = 0, read = 0;
  for (const Part& part : parts_) {
    if (part.number <= newest - static_cast<int64_t>(kParts) || part.readings == 0) continue;
    ++read;
    if (part.busy_known == 0) continue;
    sum += part.busy / part.busy_known;
    ++known;
  }
  return 2 * known > read ? sum / known : -1;
}

IdleWindow::Part IdleWindow::sum() const {
  const auto newest = static_cast<int64_t>(last_s_ * kParts / length_s_);
  Part sum;
  for (const Part& part : parts_) {
    if (part.number <= newest - static_cast<int64_t>(kParts)) continue;
    sum.cores += part.cores;
    sum.readings += part.readings;
    sum.cores_known += part.cores_known;
    sum.processes_known += part.processes_known;
    sum.with_processes += part.with_processes;
    sum.input += part.input;
    sum.hidden += part.hidden;
    sum.missed += part.missed;
    sum.peer += part.peer;
  }
  return sum;
}

IdleReason IdleWindow::reason() const {
  if (since_s_ < 0) return IdleReason::unknown;
  const Part all = sum();
  if (2 * all.peer > all.readings) return IdleReason::waits_for_peer;
  if (2 * all.processes_known > all.readings && all.with_processes == 0) return IdleReason::no_process;
  if (2 * all.cores_known <= all.readings) return IdleReason::unknown;
  if (all.input > kOften * all.readings || all.cores > kAsleepCores * all.cores_known)
    return IdleReason::waits_for_data;
  if (2 * all.missed > all.readings) return IdleReason::unknown;
  return 2 * all.hidden > all.readings ? IdleReason::not_seen : IdleReason::asleep;
}

const char* reason_text(IdleReason reason) {
  switch (reason) {
    case IdleReason::unknown:
      break;
    case IdleReason::no_process:
      return "no process of the job uses a GPU";
    case IdleReason::asleep:
      return "all processes of the job sleep";
    case IdleReason::not_seen:
      return "no process of the job computes on the host; whether they read, /proc/PID/io shows to their user and root "
             "only";
    case IdleReason::waits_for_data:
      return "processes of the job read or compute on the host meanwhile";
    case IdleReason::waits_for_peer:
      return "the job waits for another rank of its run";
  }
  return "";
}

}  // namespace remuda::monitor
