// What callers read of the pool.
#include <algorithm>

#include "agent/record_size.h"
#include "agent/rules.h"
#include "agent/service.h"

namespace remuda::agent {
namespace {

/// Of a page, so that a large pool delays nobody.
constexpr size_t kMostJobs = 256, kMostBytes = 256 << 10;
/// Of a job in short: as many run as there are shares of devices, and all are in one answer.
constexpr size_t kLongestName = 256;

/// What those who ask about one job need of others that run: what holds devices, whose it is and whether the asker is a
/// part of it; and, of their own, what it is called.
pool::Job in_short(const Caller& caller, const pool::Job& job) {
  pool::Job in_short{.id = job.id,
                     .user = job.user,
                     .uid = job.uid,
                     .priority = job.priority,
                     .preemptible = job.preemptible,
                     .idle = job.idle,
                     .run = job.run,
                     .started_s = job.started_s,
                     .time_limit_s = job.time_limit_s,
                     .array = job.array,
                     .array_index = job.array_index,
                     .state = job.state,
                     .cores = job.cores,
                     .daemons = job.daemons,
                     .cgroup = job.cgroup,
                     .devices_enforced = job.devices_enforced,
                     .files_denied = job.files_denied};
  if (caller.is_admin || caller.uid == job.uid) in_short.name = job.name.size() <= kLongestName ? job.name : "";
  in_short.request.count = job.request.count;
  in_short.request.share = job.request.share;
  in_short.request.cores = job.request.cores;
  in_short.request.host_memory_bytes = job.request.host_memory_bytes;
  return in_short;
}

void add_leases(const pool::PoolState& all, wire::Page& page) {
  for (const pool::Lease& lease : all.leases)
    if (page.state.find(lease.job)) page.state.leases.push_back(lease);
}

}  // namespace

Result<wire::Page> Service::pages(const Caller& caller, const wire::Request& request) {
  const pool::PoolState& state = pool_.seen();
  wire::Page page;
  page.state.next_job = state.next_job;
  size_t bytes = 0;
  for (auto job = std::ranges::upper_bound(state.jobs, request.job, {}, &pool::Job::id); job != state.jobs.end();
       ++job) {
    if (request.ask == wire::Ask::own && job->uid != caller.uid) continue;
    if (page.state.jobs.size() == kMostJobs || bytes > kMostBytes) {
      page.has_more = true;
      break;
    }
    page.state.jobs.push_back(visible_to(caller, *job));
    bytes += record_size(page.state.jobs.back());
  }
  add_leases(state, page);
  if (request.job == 0) {
    page.state.usage = state.usage;
    page.state.drains = state.drains;
    page.state.allocations = view_.allocations();
  }
  return page;
}

/// At most as many jobs run as there are shares of devices; what others of them run is not asked for here.
Result<wire::Page> Service::around(const Caller& caller, int64_t id) {
  const pool::PoolState& state = pool_.seen();
  wire::Page page;
  page.state.next_job = state.next_job;
  page.state.drains = state.drains;
  page.state.allocations = view_.allocations();
  for (const pool::Job& job : state.jobs)
    if (job.id == id || job.state == pool::JobState::running) {
      page.state.jobs.push_back(visible_to(caller, job.id == id ? job : in_short(caller, job)));
    }
  if (id != 0 && !state.find(id)) {
    REMUDA_ASSIGN(const auto ended, pool_.find(id));
    if (ended) page.state.jobs.insert(visible_to(caller, *ended));
  }
  add_leases(state, page);
  return page;
}

Result<wire::Page> Service::find(const Caller& caller, int64_t id) {
  wire::Page page;
  page.state.next_job = pool_.seen().next_job;
  if (const pool::Job* job = pool_.seen().find(id)) {
    page.state.jobs.push_back(visible_to(caller, *job));
  } else {
    REMUDA_ASSIGN(const auto ended, pool_.find(id));
    if (ended) page.state.jobs.push_back(visible_to(caller, *ended));
  }
  add_leases(pool_.seen(), page);
  return page;
}

Result<wire::Page> Service::ended(const Caller& caller, const wire::Request& request) {
  wire::Page page;
  page.state.next_job = pool_.seen().next_job;
  const int most = std::clamp(request.at_most, 0, static_cast<int>(kMostJobs));
  REMUDA_ASSIGN(std::vector<pool::Job> jobs, pool_.ended(most, request.job));
  page.has_more = static_cast<int>(jobs.size()) == most && most < request.at_most;
  size_t bytes = 0;
  for (const pool::Job& job : jobs) {
    if (bytes > kMostBytes) {
      page.has_more = true;
      break;
    }
    page.state.jobs.push_back(visible_to(caller, job));
    bytes += record_size(page.state.jobs.back());
  }
  return page;
}

/// The commands of others are their own.
Inventory Service::machine_for(const policy::User& user) const {
  Inventory machine = view_.inventory();
  for (Device& device : machine.devices) {
    std::vector<Process> processes = device.status.processes.value_or({});
    for (Process& process : processes)
      if (process.user.value_or("") != user.name)
        process.command = Missing{MissingReason::denied, "it is another user's"};
    if (!processes.empty()) device.status.processes = std::move(processes);
  }
  return machine;
}

}  // namespace remuda::agent
