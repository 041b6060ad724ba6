#include "monitor/use.h"

#include <algorithm>
#include <optional>
#include <set>

#include "device/throttle.h"
#include "monitor/pod_claims.h"
#include "pool/clocks.h"

namespace remuda::monitor {

namespace {

/// When its lease of that beginning ended; nothing where that is not known.
std::optional<double> end_of(const pool::Job& job, double since_s) {
  for (const pool::Turn& turn : job.earlier)
    if (turn.began_s == since_s) return turn.ended_s;
  if (job.started_s == since_s && job.state == pool::JobState::ended) return job.ended_s;
  return std::nullopt;
}

}  // namespace

bool is_use_of(const LeaseUse& use, const pool::Lease& lease, const pool::PoolState& pool) {
  const bool is_same = use.since_s == lease.since_s || pool::is_same_beginning(use.began_s, pool::began_s(pool, lease));
  return use.job == lease.job && use.device == lease.device && is_same;
}

void add(const LeaseUse& part, LeaseUse& sum) {
  sum.held_s += part.held_s;
  sum.busy_s += part.busy_s;
  sum.busy_known_s += part.busy_known_s;
  sum.effective_s += part.effective_s;
  sum.effective_known_s += part.effective_known_s;
  sum.waiting_s += part.waiting_s;
  sum.waiting_known_s += part.waiting_known_s;
  sum.energy_joules += part.energy_joules;
  sum.energy_known_s += part.energy_known_s;
  sum.throttled_s += part.throttled_s;
  sum.memory_peak_bytes = std::max(sum.memory_peak_bytes, part.memory_peak_bytes);
  sum.last_s = std::max(sum.last_s, part.last_s);
  sum.since_s = sum.since_s == 0 ? part.since_s : std::min(sum.since_s, part.since_s);
}

std::optional<double> waiting_of(const pool::Job& job, const std::string& device, double wall_s) {
  if (!job.run.is_fresh(wall_s)) return std::nullopt;
  std::optional<double> least;
  for (const pool::RunPart& part : job.run.parts)
    if (part.device == device) least = std::min(least.value_or(1), part.waiting);
  return least;
}

std::optional<double> waiting_of(const pool::Job& job, double wall_s) {
  std::set<std::string> devices;
  for (const pool::RunPart& part : job.run.parts) devices.insert(part.device);
  double sum = 0;
  for (const std::string& device : devices) {
    const auto waiting = waiting_of(job, device, wall_s);
    if (!waiting) return std::nullopt;
    sum += *waiting;
  }
  return devices.empty() ? std::nullopt : std::optional(sum / static_cast<double>(devices.size()));
}

Reading<double> effectiveness(const Device& device) {
  const Status& status = device.status;
  if (status.tensor_active.has_value() || status.dram_active.has_value())
    return std::max(status.tensor_active.value_or(0), status.dram_active.value_or(0));
  // A card draws power for nothing, too: only what it draws while a kernel runs can be work.
  if (!status.busy.has_value()) return status.busy.missing();
  if (!status.power_watts.has_value()) return status.power_watts.missing();
  if (!device.power_limit_watts.has_value()) return device.power_limit_watts.missing();
  if (device.power_limit_watts.value() <= 0) return Missing{MissingReason::unsupported, "its power has no limit"};
  return std::clamp(status.power_watts.value() / device.power_limit_watts.value(), 0.0, status.busy.value());
}

/// The mean since the reading before: by the device's own counter of energy; without one, or where it was set back, by
/// the power then and now. Negative: unknown.
double Meter::watts(const Device& device, double elapsed_s) const {
  const auto found = before_.find(device.id);
  if (found == before_.end()) return -1;
  const Before& before = found->second;
  const Status& status = device.status;
  if (status.energy_joules.has_value() && before.energy_joules >= 0 &&
      status.energy_joules.value() >= before.energy_joules)
    return (status.energy_joules.value() - before.energy_joules) / elapsed_s;
  if (status.power_watts.has_value() && before.power_watts >= 0)
    return (status.power_watts.value() + before.power_watts) / 2;
  return -1;
}

void Meter::add_waiting(const pool::Job* job, double wall_s, double held_s, LeaseUse& use) {
  const auto waiting = job ? waiting_of(*job, use.device, wall_s) : std::nullopt;
  if (!waiting) return;
  use.waiting_s += *waiting * held_s;
  use.waiting_known_s += held_s;
}

void Meter::add_alone(const Device& device, double watts, double held_s, LeaseUse& use) {
  const Status& status = device.status;
  if (status.busy.has_value()) {
    use.busy_s += status.busy.value() * held_s;
    use.busy_known_s += held_s;
  }
  if (const auto effective = effectiveness(device); effective.has_value()) {
    use.effective_s += effective.value() * held_s;
    use.effective_known_s += held_s;
  }
  if (watts >= 0) {
    use.energy_joules += watts * held_s;
    use.energy_known_s += held_s;
  }
  if (is_throttled(status).value_or(false)) use.throttled_s += held_s;
  use.memory_peak_bytes = std::max(use.memory_peak_bytes, status.memory_used_bytes.value_or(0));
}

/// A process of no known job may be of one that no cgroup holds; and a device does not work without a process.
void Meter::add_shared(const Device& device, const pool::Job* job, double watts, double held_s, const JobOf& job_of,
                       LeaseUse& use) {
  if (!device.status.processes.has_value()) return;
  const bool has_cgroup = job && !job->cgroup.empty();
  double own = 0, all = 0;
  int64_t memory = 0;
  bool is_known = !device.status.processes.value().empty() || device.status.busy.value_or(0) <= 0;
  for (const Process& process : device.status.processes.value()) {
    is_known = is_known && process.busy.has_value();
    all += process.busy.value_or(0);
    const int64_t owner = job_of(process.pid);
    if (owner == 0 && !has_cgroup && process.busy.value_or(0) > 0) is_known = false;
    if (owner != use.job) continue;
    own += process.busy.value_or(0);
    memory += process.memory_bytes.value_or(0);
  }
  use.memory_peak_bytes = std::max(use.memory_peak_bytes, memory);
  if (!is_known) return;
  use.busy_s += std::min(own, 1.0) * held_s;
  use.busy_known_s += held_s;
  if (watts < 0 || all <= 0) return;
  use.energy_joules += watts * held_s * own / all;
  use.energy_known_s += held_s;
}

/// What it did from the last reading to its end is not known: readings are of the device, up to now.
void Meter::end(LeaseUse use, double wall_s, double elapsed_s, std::span<const pool::Job> gone) {
  const auto job = std::ranges::find(gone, use.job, &pool::Job::id);
  const auto end_s = job == gone.end() ? std::nullopt : end_of(*job, use.since_s);
  if (end_s) {
    const double rest_s = std::clamp(*end_s - use.last_s, 0.0, std::max(0.0, elapsed_s));
    use.held_s += rest_s;
    use.last_s = std::min(use.last_s + rest_s, wall_s);
  }
  ended_.push_back(std::move(use));
}

/// Of jobs that began after the reading before, and have ended.
void Meter::add_unseen(double wall_s, const Inventory& machine, std::span<const pool::Job> gone,
                       const std::set<std::pair<int64_t, std::string>>& known) {
  for (const pool::Job& job : gone) {
    if (job.state != pool::JobState::ended || job.started_s <= before_wall_s_ || job.ended_s > wall_s) continue;
    for (const std::string& device : job.devices) {
      if (known.contains({job.id, device})) continue;
      const Device* const found = machine.find(device);
      ended_.push_back({.job = job.id,
                        .device = device,
                        .user = job.user,
                        .model = found ? found->model : "",
                        .share = job.request.share,
                        .since_s = job.started_s,
                        .last_s = job.ended_s,
                        .held_s = std::max(0.0, job.ended_s - job.started_s)});
    }
  }
}

void Meter::add(double now_s, double wall_s, const Inventory& machine, const pool::PoolState& pool, const JobOf& job_of,
                std::span<const pool::Job> gone) {
  const double elapsed_s = before_s_ < 0 ? 0 : now_s - before_s_;
  std::map<std::string, int> holders;
  for (const pool::Lease& lease : pool.leases) ++holders[lease.device];
  std::set<std::pair<int64_t, std::string>> seen, known;
  for (const auto& [key, _] : alive_) known.insert(key);
  for (const pool::Lease& lease : pool.leases) {
    const auto key = std::pair(lease.job, lease.device);
    seen.insert(key);
    LeaseUse& use = alive_[key];
    const pool::Job* const job = pool.find(lease.job);
    // The job may have lost its device, and got it again.
    if (use.job != 0 && !is_use_of(use, lease, pool)) end(std::exchange(use, {}), wall_s, elapsed_s, gone);
    const bool is_new = use.job == 0;
    if (is_new)
      use = LeaseUse{.job = lease.job,
                     .device = lease.device,
                     .user = job ? job->user : "",
                     .pod = job && is_pod(job->id) ? job->name : "",
                     .since_s = lease.since_s,
                     .began_s = pool::began_s(pool, lease)};
    use.last_s = wall_s;
    use.share = lease.share;
    // It may have begun since the reading before; later on, the wall clock may be set, and time passes all the same.
    const double passed_s = std::max(0.0, elapsed_s);
    const double held_s = is_new ? std::clamp(wall_s - lease.since_s, 0.0, passed_s) : passed_s;
    use.held_s += held_s;
    const Device* const device = machine.find(lease.device);
    if (device) use.model = device->model;
    if (!device || held_s <= 0 || elapsed_s > kLongestGap_s) continue;
    add_waiting(job, wall_s, held_s, use);
    if (holders[lease.device] == 1 && lease.share >= 1)
      add_alone(*device, watts(*device, elapsed_s), held_s, use);
    else
      add_shared(*device, job, watts(*device, elapsed_s), held_s, job_of, use);
  }
  for (auto& [key, use] : alive_)
    if (!seen.contains(key)) end(use, wall_s, elapsed_s, gone);
  std::erase_if(alive_, [&](const auto& entry) { return !seen.contains(entry.first); });
  if (before_s_ >= 0) add_unseen(wall_s, machine, gone, known);
  before_.clear();
  for (const Device& device : machine.devices)
    before_[device.id] = {device.status.energy_joules.value_or(-1), device.status.power_watts.value_or(-1)};
  before_s_ = now_s;
  before_wall_s_ = wall_s;
}

void Meter::resume(const std::vector<LeaseUse>& uses) {
  for (const LeaseUse& use : uses) {
    LeaseUse& alive = alive_[{use.job, use.device}];
    if (alive.job == 0)
      alive = use;
    else
      monitor::add(use, alive);
  }
}

}  // namespace remuda::monitor
