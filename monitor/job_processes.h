// Which job a process belongs to, by the name of the cgroup that it is in: a process's environment is no evidence.
#pragma once

#include <cstdint>
#include <string_view>

#include "monitor/use.h"
#include "pool/job.h"

namespace remuda::monitor {

/// The job whose cgroup a process is in, from the text of /proc/PID/cgroup (cgroups(7)); 0: none. Pure.
int64_t job_in(std::string_view cgroups, const pool::PoolState& pool);

/// Asks /proc. `pool` must outlive it.
JobOf job_by_cgroup(const pool::PoolState& pool);

}  // namespace remuda::monitor
