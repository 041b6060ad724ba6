#include "monitor/job_processes.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>

#include "base/file.h"
#include "monitor/pod_claims.h"

namespace remuda::monitor {

namespace {

/// Whether a cgroup, by its path from the root of its tree, is the job's or below it, as that of a container started
/// within it. A user can give a cgroup of his own any name, and not the place of the job's.
bool is_within(std::string_view path, const std::string& job) {
  const size_t slash = job.rfind('/');
  if (slash == std::string::npos) return false;
  const std::string_view name = std::string_view(job).substr(slash);
  for (size_t at = path.find(name); at != std::string_view::npos; at = path.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((end == path.size() || path[end] == '/') && job.ends_with(path.substr(0, end))) return true;
  }
  return false;
}

}  // namespace

/// A line is ID:CONTROLLERS:PATH, the path as seen from the root of the process's cgroup namespace.
int64_t job_in(std::string_view cgroups, const pool::PoolState& pool) {
  while (!cgroups.empty()) {
    const size_t end = std::min(cgroups.find('\n'), cgroups.size());
    std::string_view line = cgroups.substr(0, end);
    cgroups.remove_prefix(std::min(end + 1, cgroups.size()));
    for (int field = 0; field < 2; ++field) line.remove_prefix(std::min(line.find(':'), line.size() - 1) + 1);
    for (const pool::Job& job : pool.jobs)
      if (is_pod(job.id) ? is_cgroup_of_pod(line, job.cgroup) : is_within(line, job.cgroup)) return job.id;
  }
  return 0;
}

JobOf job_by_cgroup(const pool::PoolState& pool) {
  return [&pool](int pid) -> int64_t {
    const auto text = read_text(fmt::format("/proc/{}/cgroup", pid), 64 << 10);
    return text ? job_in(*text, pool) : 0;
  };
}

std::vector<std::string> used_by_strangers(const Inventory& machine, const pool::PoolState& pool, const JobOf& job_of) {
  std::vector<std::string> devices;
  for (const Device& device : machine.devices) {
    std::vector<const pool::Job*> holders;
    for (const pool::Lease& lease : pool.leases)
      if (lease.device == device.id) holders.push_back(pool.find(lease.job));
    const bool are_held = !holders.empty() && std::ranges::all_of(holders, [](const pool::Job* job) {
      return job && !job->cgroup.empty();
    });
    // A screen is drawn on many a GPU, and a sharing daemon serves the jobs.
    const auto is_strange = [&](const Process& one) { return one.type == "compute" && job_of(one.pid) == 0; };
    if (are_held && std::ranges::any_of(device.status.processes.value_or({}), is_strange)) devices.push_back(device.id);
  }
  return devices;
}

}  // namespace remuda::monitor
