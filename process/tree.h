// The processes of this machine as a tree, and how to reach some of them: by descent, or by what they carry in their
// environment, which children inherit.
//
// A daemon that serves several jobs is of none of them, though one of them has started it: it carries REMUDA_DAEMON.
// Zombies do not count: they hold nothing. Nothing here blocks for longer than it is told.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process/process_id.h"

namespace remuda::process {

/// All processes that /proc shows.
std::vector<int> all_processes();

/// Children, theirs, and so on, without daemons, guarded children, those in `except` and what descends from these.
std::vector<ProcessId> descendants(int root, const std::vector<int>& except = {});

/// The entries "NAME=VALUE" that the process was started with; nothing where they cannot be seen: of other users'
/// processes only root sees them.
std::optional<std::vector<std::string>> environ_of(int pid);

/// The processes, this one excepted, whose environment has all of these entries.
std::vector<ProcessId> processes_with(const std::vector<std::string>& entries);
/// The processes, this one excepted, whose entries of the environment `matches`.
std::vector<ProcessId> processes_with(const std::function<bool(const std::vector<std::string>&)>& matches);

/// Sends it to exactly that process, never to another one under the same number. False when it is gone or not ours.
bool send_signal(const ProcessId& process, int number);

/// Kills (SIGKILL) all that `find` gives, again and again, until it gives none; calls `between` after each round, which
/// may reap. What is left after `patience_s`: processes that the kernel does not let go (state D) or that are not ours.
std::vector<ProcessId> kill_all(
    const std::function<std::vector<ProcessId>()>& find, double patience_s,
    const std::function<void()>& between = [] {});

}  // namespace remuda::process
