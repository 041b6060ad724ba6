// HostLimits: what keeps the processes of a job to its cores and its memory of the host, and counts what they take.
//
// The job's cgroup does, where its tree has the kernel's controllers; in trees of version 1, where each controller has
// one of its own, further cgroups of the same name, which the processes must join, too. Cores are kept by the
// controller cpuset: no process runs on another one; else by cpu: together they get as much time as so many cores have.
// Memory is kept by the controller memory: where the job needs more, the kernel ends one of its processes.
//
// In version 2 a cgroup with processes cannot limit those below it, except the root: "no internal processes",
// cgroups(7). So for root, cgroups of jobs are made beside all others, in one that has no processes (job_places()).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "confine/cgroup.h"
#include "device/reading.h"

namespace remuda::confine {

/// What a job has of its host for itself; nothing: it is not limited.
struct HostShare {
  std::vector<int> cores;
  int64_t memory_bytes = 0;
};

/// What is in force of it.
struct HostLimited {
  std::string cores;  ///< "cpuset" or "quota"; empty: nothing but the affinity of what was started, which it can change
  bool memory = false;   ///< it cannot take more
  std::string obstacle;  ///< a clause: why not all that was asked for is; empty where it is
  bool operator==(const HostLimited&) const = default;
};

struct HostLimits {
  HostLimited how;
  std::vector<JobCgroup> further;  ///< of version 1; processes join them besides the job's cgroup
};

/// Sets them for a job's cgroup. Its memory is counted where it can be, whether it is limited or not.
HostLimits limit_host(const JobCgroup& cgroup, const HostShare& share);

/// Where cgroups of jobs are made: own_cgroup_places(), except for root in the tree of version 2, where that makes
/// limits possible.
std::vector<CgroupPlace> job_places();

/// The memory of a job, as its cgroup has counted it.
struct MemoryUse {
  Reading<int64_t> peak_bytes;
  int64_t kills = 0;  ///< processes that the kernel has ended, as there was no more memory for the job
};
/// "the kernel has ended 2 of its processes, as more was wanted than its 16 GiB of the host"; empty where it has ended
/// none. `limit_bytes`: 0 where the job had none.
std::string kills_text(const MemoryUse& use, int64_t limit_bytes);

/// `cgroup`: its folder; empty: none. `of_further`: those of version 1.
MemoryUse memory_use(const std::string& cgroup, const std::vector<std::string>& of_further);

/// Where further cgroups of jobs are made.
std::vector<std::string> further_places();

}  // namespace remuda::confine
