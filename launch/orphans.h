// Orphans: every process of a job, wherever it went, and how none of them is left.
//
// A job's processes are those that descend from its keeper, which is their subreaper: what loses its parent becomes the
// keeper's own child. When the keeper is gone, its processes are told by their environment, which children inherit:
// REMUDA_JOB names the job and REMUDA_POOL the pool it is of; and by their cgroup, where the job has one.
//
// A daemon that serves several jobs is of none of them, though one of them has started it: it carries REMUDA_DAEMON.
//
// Zombies do not count: they hold nothing. Nothing here blocks for longer than it is told.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pool/job.h"

namespace remuda {

inline constexpr const char* kJobVariable = "REMUDA_JOB";
inline constexpr const char* kPoolVariable = "REMUDA_POOL";
inline constexpr const char* kDaemonVariable = "REMUDA_DAEMON";

/// Children, their children, and so on, without daemons, those in `except` and what descends from these.
std::vector<ProcessId> descendants(int root, const std::vector<int>& except = {});

/// Those that carry the job's number in their environment, this process excepted. Of other users' processes only root
/// sees that.
std::vector<ProcessId> carriers(const std::string& pool, int64_t job);

/// The processes of the daemon that carries this name.
std::vector<ProcessId> daemon_processes(const std::string& name);

/// Whether processes of the job may be left, as far as this user can see. What cannot be seen into and belongs to the
/// job's user and started since counts as one: better a device held too long than twice.
bool has_orphans(const std::string& pool, const Job& job);

/// Sends it to exactly that process, never to another one under the same number. False when it is gone or not ours.
bool send_signal(const ProcessId& process, int number);

/// Kills (SIGKILL) all that `find` gives, again and again, until it gives none; calls `between` after each round, which
/// may reap. What is left after `patience_s`: processes that the kernel does not let go (state D) or that are not ours.
std::vector<ProcessId> kill_all(
    const std::function<std::vector<ProcessId>()>& find, double patience_s,
    const std::function<void()>& between = [] {});

/// Kills all that is left of a job whose keeper is gone: its carriers, and who is in its cgroup (launch/cgroup.h)
/// whatever it carries. What is left after `patience_s`.
std::vector<ProcessId> kill_orphans(const std::string& pool, int64_t job, double patience_s);

/// Removes the cgroup of a job whose keeper is gone. False while a process is in it.
bool remove_cgroups(const std::string& pool, int64_t job);

}  // namespace remuda
