// Caller: who is at the other end of a connection, as the kernel reports it. Nothing that the other end says is used.
#pragma once

#include <optional>

#include "base/file.h"
#include "base/result.h"
#include "process/process_id.h"

namespace remuda::agent {

struct Caller {
  int uid = 0;            ///< in the agent's user namespace: root of a container with one of its own is some other user
  bool is_admin = false;  ///< root of this machine
  process::ProcessId process;   ///< that made the connection
  bool can_be_started = false;  ///< what this agent starts as that user sees the machine as that process does
  std::optional<int> slice;     ///< the user whose slice the process is in (bearer.h)
};

/// The caller of a connection that was accepted. Refuses (usage) one whose process has ended, and root of a container
/// that shares this machine's users: it is not known to be an administrator, and no other user either.
Result<Caller> caller_of(int connection);

/// What caller_of() decides by. `is_of_machine`: the process is in the pid and user namespace of the agent, and has the
/// machine's root folder: a container may share the former. Pure.
Result<Caller> judge_caller(int uid, const process::ProcessId& process, bool is_of_machine);

}  // namespace remuda::agent
