// Which job a process belongs to, by the name of the cgroup that it is in: a process's environment is no evidence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/inventory.h"
#include "monitor/use.h"
#include "pool/state.h"

namespace remuda::monitor {

/// The job, or pod (pod_claims.h), whose cgroup a process is in, from the text of /proc/PID/cgroup (cgroups(7)); 0:
/// none. Pure.
int64_t job_in(std::string_view cgroups, const pool::PoolState& pool);

/// Asks /proc. `pool` must outlive it.
JobOf job_by_cgroup(const pool::PoolState& pool);

/// Ids of devices whose leases' jobs are all held by cgroups, and that a process of none of these computes on.
std::vector<std::string> used_by_strangers(const Inventory& machine, const pool::PoolState& pool, const JobOf& job_of);

}  // namespace remuda::monitor
