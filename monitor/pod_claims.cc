#include "monitor/pod_claims.h"

#include <algorithm>
#include <set>

#include "base/crc32c.h"

namespace remuda::monitor {
namespace {

/// A pod may have a device for several of its containers.
std::set<std::string> uids_of(const pool::Allocation& allocation) {
  std::set<std::string> uids;
  for (const pool::Pod& pod : allocation.pods) uids.insert(pod.uid);
  return uids;
}

pool::Job job_of(const pool::Pod& pod) {
  pool::Job job;
  job.id = pod_number(pod.uid);
  job.name = pod.name.empty() ? pod.uid : pod.name_space + "/" + pod.name;
  job.cgroup = pod.uid;
  job.state = pool::JobState::running;
  return job;
}

}  // namespace

int64_t pod_number(const std::string& uid) { return -1 - static_cast<int64_t>(crc32c(uid)); }

/// ".../podUID/..." where the kubelet makes them itself; where systemd does, ".../kubepods-burstable-podUID.slice/...",
/// with "_" for "-" in the UID.
bool is_cgroup_of_pod(std::string_view path, const std::string& uid) {
  if (uid.empty() || !(path.starts_with("/kubepods") || path.starts_with("/kubelet"))) return false;
  std::string unit = "-pod" + uid + ".slice";
  std::ranges::replace(unit.begin() + 1, unit.end(), '-', '_');
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "pod" + uid || part.ends_with(unit)) return true;
    at = end + 1;
  }
  return false;
}

std::optional<pool::PoolState> PodClaims::beside(const pool::PoolState& pool, double wall_s) {
  std::map<std::pair<int64_t, std::string>, double> since;
  std::optional<pool::PoolState> all;
  for (const pool::Allocation& allocation : pool.allocations) {
    const std::set<std::string> uids = uids_of(allocation);
    for (const std::string& uid : uids) {
      if (!all) all = pool;
      const pool::Job job = job_of(*std::ranges::find(allocation.pods, uid, &pool::Pod::uid));
      if (!all->find(job.id)) all->jobs.insert(job);
      const auto before = since_.find({job.id, allocation.device});
      const double since_s = before == since_.end() ? wall_s : before->second;
      since[{job.id, allocation.device}] = since_s;
      pool::Lease lease;
      lease.job = job.id;
      lease.device = allocation.device;
      lease.share = 1 / static_cast<double>(uids.size());
      lease.since_s = since_s;
      all->leases.push_back(lease);
    }
  }
  since_ = std::move(since);
  return all;
}

}  // namespace remuda::monitor
