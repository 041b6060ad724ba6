// The processes of this machine as a tree, and how to reach some of them: by descent, or by what they carry in their
// environment, which children inherit.
//
// A daemon that serves several jobs belongs to none of them, though one of them has started it: it carries
// REMUDA_DAEMON. Zombies do not count: they hold nothing. Nothing here blocks for longer than its time limit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process/process_id.h"

namespace remuda::process {

/// All processes that /proc shows.
std::vector<int> all_processes();

/// Children, theirs, and so on, whatever they carry. Reads nothing that a process can keep from being read: a program
/// of a hostile user can make whoever reads its environment wait for ever.
std::vector<ProcessId> all_descendants(int root);

/// Children, theirs, and so on, without daemons, guarded children, those in `except` and what descends from these.
std::vector<ProcessId> descendants(int root, const std::vector<int>& except = {});

/// The process, and all that descends from it and is of the same user: `uid`, who alone has it (sole_user_of()).
std::vector<ProcessId> family_of(const ProcessId& process, int uid);

/// The entries "NAME=VALUE" that the process was started with; nothing where they cannot be read: only root can read
/// those of other users' processes. A process that begins another program (execve) has none for a moment; that is
/// waited for, a second at most, so that no process of a job is missed by those who look for all of them.
std::optional<std::vector<std::string>> environ_of(int pid);

/// Whether it belongs to no job, as several use it: by REMUDA_DAEMON, or podman's pause process.
bool is_daemon(int pid);

/// The processes, except this one, whose environment has all of these entries.
std::vector<ProcessId> processes_with(const std::vector<std::string>& entries);
/// The processes, except this one, for whose entries of the environment `matches` is true.
std::vector<ProcessId> processes_with(const std::function<bool(const std::vector<std::string>&)>& matches);

/// Sends a signal to exactly that process, never to another one with the same number. False when it is gone or belongs
/// to another user.
bool send_signal(const ProcessId& process, int number);

/// Kills (SIGKILL) all that `find` gives, again and again, until it gives none; calls `between` after each round, which
/// may reap. Returns those left after `patience_s`: processes in an uninterruptible call (state D), or of other users.
std::vector<ProcessId> kill_all(
    const std::function<std::vector<ProcessId>()>& find, double patience_s,
    const std::function<void()>& between = [] {});

}  // namespace remuda::process
