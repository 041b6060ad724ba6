#include "monitor/idle_jobs.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "confine/cgroup.h"
#include "pool/clocks.h"
#include "process/tree.h"

namespace remuda::monitor {
namespace {

/// One that works needs no look at its processes.
constexpr double kWorks = 0.5;

/// Leases of GPUs and of parts of them, by job.
std::map<int64_t, std::vector<const pool::Lease*>> leases_of(const Inventory& machine, const pool::PoolState& pool) {
  std::map<int64_t, std::vector<const pool::Lease*>> leases;
  for (const pool::Lease& lease : pool.leases) {
    const Device* const device = machine.find(lease.device);
    if (device && device->kind != DeviceKind::cpu) leases[lease.job].push_back(&lease);
  }
  return leases;
}

/// All its ranks here wait for others for most of their time: those are elsewhere.
bool waits_for_peer(const pool::RunNotice& run, double wall_s) {
  constexpr double kMost = 0.5;
  return run.is_fresh(wall_s) && !run.parts.empty() &&
         std::ranges::all_of(run.parts, [](const pool::RunPart& part) { return part.waiting > kMost; });
}

}  // namespace

std::vector<int> members_of(const pool::Job& job) {
  std::vector<int> members;
  if (!job.cgroup.empty())
    members = confine::cgroup_pids(job.cgroup);
  else if (is_alive(job.keeper))
    for (const process::ProcessId& one : process::all_descendants(job.keeper.pid)) members.push_back(one.pid);
  std::erase(members, job.keeper.pid);
  return members;
}

/// How busy the job's processes keep a device that others use, too; negative where the driver does not report it.
double IdleJobs::share_busy(const pool::Job& job, const std::set<int>& own, const Device& device,
                            const pool::PoolState& pool) const {
  if (!device.status.processes.has_value()) return -1;
  double busy = 0;
  std::vector<int> strange;
  for (const Process& process : device.status.processes.value()) {
    const bool is_own = own.contains(process.pid);
    if (is_own && !process.busy.has_value()) return -1;
    if (is_own) busy += process.busy.value();
    if (!is_own && process.busy.value_or(0) > 0) strange.push_back(process.pid);
  }
  for (const pool::Lease& lease : pool.leases) {
    const pool::Job* const other = lease.device == device.id && lease.job != job.id ? pool.find(lease.job) : nullptr;
    if (strange.empty()) break;
    if (!other) continue;
    const std::vector<int> theirs = members_(*other);
    std::erase_if(strange, [&](int pid) { return std::ranges::find(theirs, pid) != theirs.end(); });
  }
  return strange.empty() ? std::min(busy, 1.0) : -1;
}

Seen IdleJobs::see(const pool::Job& job, const std::vector<const pool::Lease*>& leases, const Inventory& machine,
                   const pool::PoolState& pool, Watched& watched, size_t most_processes, double now_s) const {
  Seen seen;
  bool is_known = true, are_known = true;
  int processes = 0;
  const bool has_all = std::ranges::all_of(leases, [](const pool::Lease* lease) { return lease->share >= 1; });
  double own_busy = 0;
  for (const pool::Lease* lease : leases) {
    const Status& status = machine.find(lease->device)->status;
    if (has_all) own_busy = std::max(own_busy, status.busy.value_or(-1));
    is_known = is_known && status.busy.has_value();
    are_known = are_known && status.processes.has_value();
    processes += static_cast<int>(status.processes.value_or({}).size());
  }
  if (has_all && (is_known || own_busy >= kWorks)) seen.busy = own_busy;
  if (has_all && are_known) seen.processes = processes;
  if (seen.busy >= kWorks) return seen;
  const std::vector<int> members = members_(job);
  seen.misses_some = members.size() > most_processes;
  watched.activity.look(now_s, std::span(members).first(std::min(members.size(), most_processes)), seen);
  if (has_all) return seen;
  const std::set<int> pids(members.begin(), members.end());
  double busy = 0;
  for (const pool::Lease* lease : leases) {
    const double part = share_busy(job, pids, *machine.find(lease->device), pool);
    busy = part < 0 || busy < 0 ? -1 : std::max(busy, part);
  }
  seen.busy = busy;
  return seen;
}

void IdleJobs::look(double now_s, double wall_s, const Inventory& machine, const pool::PoolState& pool) {
  const auto leases = leases_of(machine, pool);
  std::erase_if(watched_, [&](const auto& one) { return !leases.contains(one.first); });
  const size_t most_processes = kMostProcesses / std::clamp<size_t>(leases.size(), 1, kMostProcesses);
  for (const auto& [id, held] : leases) {
    const pool::Job* const job = pool.find(id);
    if (!job || job->state != pool::JobState::running) continue;
    Watched& watched = watched_.try_emplace(id, IdleWindow(window_s_), JobActivity(), 0).first->second;
    const double began_s = pool::began_s(pool, *held[0]);
    if (!pool::is_same_beginning(std::exchange(watched.began_s, began_s), began_s)) watched.window.clear();
    Seen seen = see(*job, held, machine, pool, watched, most_processes, now_s);
    seen.waits_for_peer = waits_for_peer(job->run, wall_s);
    watched.window.add(now_s, seen);
  }
}

const IdleWindow* IdleJobs::find(int64_t job) const {
  const auto found = watched_.find(job);
  return found == watched_.end() ? nullptr : &found->second.window;
}

}  // namespace remuda::monitor
