// Orphans: every process of a job, wherever it went, and how none of them is left.
//
// A job's processes are those that descend from its keeper, which is their subreaper: what loses its parent becomes the
// keeper's own child. When the keeper is gone, its processes are known by their environment, which children inherit:
// REMUDA_JOB names the job, and REMUDA_POOL_ID the pool it is of, which is not any other one under the same path; and
// by their cgroup, where the job has one.
#pragma once

#include <string>
#include <vector>

#include "pool/job.h"
#include "process/tree.h"

namespace remuda::run {

/// Those that carry the job's number in their environment, this process excepted. Of other users' processes only root
/// sees that.
std::vector<process::ProcessId> carriers(const std::string& pool, int64_t job);

/// Whether processes of the job may be left, as far as this user can see. What cannot be seen into and belongs to the
/// job's user and started since counts as one: better a device held too long than twice.
bool has_orphans(const std::string& pool, const pool::Job& job);

/// Kills all that is left of a job whose keeper is gone: its carriers, and who is in its cgroup (confine/cgroup.h)
/// whatever it carries. What is left after `patience_s`.
std::vector<process::ProcessId> kill_orphans(const std::string& pool, int64_t job, double patience_s);

/// Removes the cgroup of a job whose keeper is gone. False while a process is in it.
bool remove_cgroups(const std::string& pool, int64_t job);

}  // namespace remuda::run
