#include "monitor/job_processes.h"

#include <fmt/format.h>

#include "base/file.h"

namespace remuda::monitor {

/// A line is ID:CONTROLLERS:PATH, the path as seen from the root of the process's cgroup namespace.
int64_t job_in(std::string_view cgroups, const pool::PoolState& pool) {
  while (!cgroups.empty()) {
    const size_t end = std::min(cgroups.find('\n'), cgroups.size());
    std::string_view line = cgroups.substr(0, end);
    cgroups.remove_prefix(std::min(end + 1, cgroups.size()));
    for (int field = 0; field < 2; ++field) line.remove_prefix(std::min(line.find(':'), line.size() - 1) + 1);
    if (line.size() < 2) continue;
    for (const pool::Job& job : pool.jobs) {
      const size_t at = job.cgroup.empty() ? std::string_view::npos : job.cgroup.find(line);
      if (at != std::string_view::npos && at + line.size() == job.cgroup.size()) return job.id;
      // Below the job's: a container started within it.
      const size_t name = job.cgroup.rfind('/');
      if (!job.cgroup.empty() && name != std::string::npos &&
          line.find(job.cgroup.substr(name) + "/") != std::string_view::npos)
        return job.id;
    }
  }
  return 0;
}

JobOf job_by_cgroup(const pool::PoolState& pool) {
  return [&pool](int pid) -> int64_t {
    const auto text = read_text(fmt::format("/proc/{}/cgroup", pid), 64 << 10);
    return text ? job_in(*text, pool) : 0;
  };
}

}  // namespace remuda::monitor
