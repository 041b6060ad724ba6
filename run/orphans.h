// Orphans: finds every process of a job, also one that left its parent or group, and ends them all.
//
// A job's processes are the descendants of its keeper, which is their subreaper: a process that loses its parent
// becomes the keeper's child. When the keeper is gone, they are recognised by their environment, which children
// inherit: REMUDA_JOB names the job, and REMUDA_POOL_ID its pool, as distinct from any other pool under the same path;
// and by their cgroup, where the job has one.
#pragma once

#include <string>
#include <vector>

#include "pool/job.h"
#include "process/tree.h"

namespace remuda::run {

/// The processes that carry the job's number in their environment, except this process. Only root can read the
/// environment of other users' processes.
std::vector<process::ProcessId> carriers(const std::string& pool, int64_t job);

/// Whether processes of the job may be left, as far as this user can see. A process whose environment cannot be read,
/// that belongs to the job's user and started after the job did, counts as one: better a device held too long than
/// twice.
bool has_orphans(const std::string& pool, const pool::Job& job);

/// Kills all processes left of a job whose keeper is gone: its carriers(), and all in its cgroup (confine/cgroup.h),
/// whatever their environment. Returns those left after `patience_s`.
std::vector<process::ProcessId> kill_orphans(const std::string& pool, int64_t job, double patience_s);

/// Removes the cgroup of a job whose keeper is gone. False while a process is in it.
bool remove_cgroups(const std::string& pool, int64_t job);

}  // namespace remuda::run
