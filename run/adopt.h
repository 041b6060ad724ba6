// Adopt: a lease for a process that runs already and has opened no device yet, until it has ended.
//
// The process and what has descended from it become the job's, where a cgroup can be made: then they are kept from
// other devices, and to the job's cores and memory. Its environment stays as it is, so it sees all devices; and how it
// ends, only its parent is told: so the job never counts as one that succeeded.
//   cancelled, preempted, time limit:  the process gets the stop signal; after the grace time all of it SIGKILL
//   the keeper is killed:              in a cgroup all of it is killed; otherwise it holds its devices until it ends
#pragma once

#include "run/caretaker.h"
#include "run/relay.h"
#include "run/run_spec.h"

namespace remuda::run {

/// Refuses (usage) a process that cannot be taken: it is not this user's, a part of a job, or has opened a device of
/// this machine.
Result<void> check_adoptable(const process::ProcessId& process, const Inventory& inventory, bool live);

/// Waits until the process has its devices; see run_keeper_for().
Result<int> adopt(const RunSpec& spec, const OpenPool& open, const process::ProcessId& process, const Report& report);

}  // namespace remuda::run
