#include "agent/pages.h"

#include <algorithm>
#include <utility>

#include "agent/record_size.h"
#include "agent/rules.h"
#include "base/characters.h"
#include "device/field_size.h"

namespace remuda::agent {
namespace {

/// Of a page, so that a large pool delays nobody; one of jobs in short has more of them, as an older client asks for no
/// second one.
constexpr size_t kMostJobs = 256, kMostInShort = 2048, kMostBytes = 256 << 10, kMostBytesInShort = 512 << 10;
/// Of each of the lists that are of no job.
constexpr size_t kMostBytesOfList = 64 << 10;
constexpr size_t kLongestName = 256;  ///< of a job in short
constexpr size_t kMostProcesses = 512;

/// Without its longest lists, where it alone would fill a page: its machine has thousands of cores, say.
pool::Job fitting(pool::Job job) {
  const auto leave_out = [&job](auto& list) {
    if (record_size(job) > kLargestRecord) list.clear();
  };
  leave_out(job.earlier);
  leave_out(job.run.parts);
  leave_out(job.processes);
  leave_out(job.cores);
  leave_out(job.groups);
  return job;
}

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
                     .clock = job.clock,
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

/// A page that is being filled.
class Filling {
 public:
  Filling(const pool::PoolState& all, size_t most_jobs, size_t most_bytes)
      : most_jobs_(most_jobs), most_bytes_(most_bytes) {
    page_.state.next_job = all.next_job;
    for (const pool::Lease& lease : all.leases) leases_.push_back(&lease);
    std::ranges::stable_sort(leases_, {}, &pool::Lease::job);
  }

  /// With its leases, unless the page is full: then it has more. The first one is always taken.
  bool add(pool::Job job, void (pool::Jobs::*where)(pool::Job) = &pool::Jobs::insert) {
    job = fitting(std::move(job));
    const auto leases = std::ranges::equal_range(leases_, job.id, {}, &pool::Lease::job);
    size_t bytes = record_size(job);
    for (const pool::Lease* lease : leases) bytes += fields::json_size(*lease);
    pool::Jobs& jobs = page_.state.jobs;
    page_.has_more = !jobs.empty() && (jobs.size() >= most_jobs_ || bytes_ + bytes > most_bytes_);
    if (page_.has_more) return false;
    bytes_ += bytes;
    for (const pool::Lease* lease : leases) page_.state.leases.push_back(*lease);
    (jobs.*where)(std::move(job));
    return true;
  }

  wire::Page& page() { return page_; }

 private:
  const size_t most_jobs_, most_bytes_;
  std::vector<const pool::Lease*> leases_;  ///< by job
  size_t bytes_ = 0;
  wire::Page page_;
};

/// Those who have had most: who is left out has had next to nothing.
std::vector<pool::Usage> most_used(std::vector<pool::Usage> usage) {
  if (fields::json_size(usage) <= kMostBytesOfList) return usage;
  std::ranges::stable_sort(usage, std::ranges::greater(), &pool::Usage::device_seconds);
  size_t bytes = 0;
  const auto end = std::ranges::find_if(
      usage, [&bytes](const pool::Usage& one) { return (bytes += fields::json_size(one)) > kMostBytesOfList; });
  usage.erase(end, usage.end());
  return usage;
}

/// With texts of which all together fit: a character takes up to four bytes.
template <typename Entry, typename Shorten>
std::vector<Entry> with_short_texts(std::vector<Entry> list, Shorten shorten) {
  if (fields::json_size(list) <= kMostBytesOfList) return list;
  constexpr size_t kTexts = 4, kBytes = 4;
  const size_t most = kMostBytesOfList / (list.size() * kTexts * kBytes);
  for (Entry& entry : list) shorten(entry, [most](std::string& text) { text = shortened(text, most); });
  return list;
}

void add_what_is_of_no_job(const Readable& all, wire::Page& page) {
  page.state.usage = most_used(all.state.usage);
  page.state.drains = with_short_texts(all.state.drains, [](pool::Drain& drain, auto cut) {
    cut(drain.reason);
    cut(drain.by);
  });
  page.state.allocations = with_short_texts(all.allocations, [](pool::Allocation& one, auto cut) {
    cut(one.holder);
    cut(one.instead);
    one.pods.clear();
  });
}

}  // namespace

wire::Page page_of_jobs(const Readable& all, const Caller& caller, bool own, int64_t after) {
  Filling filling(all.state, kMostJobs, kMostBytes);
  const pool::Jobs& jobs = all.state.jobs;
  for (auto job = std::ranges::upper_bound(jobs, after, {}, &pool::Job::id); job != jobs.end(); ++job) {
    if (own && job->uid != caller.uid) continue;
    if (!filling.add(visible_to(caller, *job))) break;
  }
  if (after == 0) add_what_is_of_no_job(all, filling.page());
  return std::move(filling.page());
}

wire::Page page_around(const Readable& all, const Caller& caller, const pool::Job* job, int64_t after) {
  Filling filling(all.state, kMostInShort, kMostBytesInShort);
  if (after == 0) {
    if (job) filling.add(visible_to(caller, *job));
    add_what_is_of_no_job(all, filling.page());
  }
  const pool::Jobs& jobs = all.state.jobs;
  for (auto one = std::ranges::upper_bound(jobs, after, {}, &pool::Job::id); one != jobs.end(); ++one) {
    if (one->state != pool::JobState::running || (job && one->id == job->id)) continue;
    if (!filling.add(visible_to(caller, in_short(caller, *one)))) break;
  }
  return std::move(filling.page());
}

wire::Page page_with(const Readable& all, const Caller& caller, const pool::Job* job) {
  Filling filling(all.state, 1, kMostBytes);
  if (job) filling.add(visible_to(caller, *job));
  return std::move(filling.page());
}

wire::Page page_of_ended(const Readable& all, const Caller& caller, const std::vector<pool::Job>& jobs) {
  Filling filling(all.state, kMostJobs, kMostBytes);
  for (const pool::Job& job : jobs)
    if (!filling.add(visible_to(caller, job), &pool::Jobs::push_back)) break;
  return std::move(filling.page());
}

Inventory machine_for(const std::string& user, Inventory machine) {
  const size_t most = std::max<size_t>(1, kMostProcesses / std::max<size_t>(1, machine.devices.size()));
  for (Device& device : machine.devices) {
    std::vector<Process> processes = device.status.processes.value_or({});
    if (processes.empty()) continue;
    for (Process& process : processes)
      if (process.user.value_or("") != user) process.command = Missing{MissingReason::denied, "it is another user's"};
    if (processes.size() > most) processes.resize(most);
    device.status.processes = std::move(processes);
  }
  return machine;
}

}  // namespace remuda::agent
