// Hold: devices for a shell that keeps running, until the shell ends or a user gives the devices back.
//
// The front, a command within the shell, ends once the devices are granted. Its keeper stays, and depends only on the
// shell's lifetime: not on its terminal, its open files or its folder. What the shell starts is no child of that
// keeper, so it can outlive the lease.
//   the keeper is killed:  the next process that uses the pool kills what carries the job's number, frees the devices
//   the front is killed:   while the job waits, it leaves the queue; later the front has ended anyway
#pragma once

#include <functional>
#include <string>

#include "confine/visibility.h"
#include "run/caretaker.h"
#include "run/relay.h"
#include "run/run_spec.h"

namespace remuda::run {

/// Waits until `shell` has its devices, and then writes the text that `words` makes from the job's environment to
/// stdout. Returns 0 then, else the exit code of run_front(). `report` receives the messages until then, last
/// Kind::started or Kind::ended. The caller has no pool open and one thread.
Result<int> hold_for(const RunSpec& spec, const OpenPool& open, const process::ProcessId& shell,
                     const std::function<std::string(const confine::Visibility&)>& words, const Report& report);

}  // namespace remuda::run
