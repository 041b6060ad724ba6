// Hold: devices for a shell that goes on by itself, until it ends or somebody gives them back.
//
// The front, a command within the shell, ends once the devices are granted. Its keeper stays behind, tied to the
// shell's life and to nothing else of it: not its terminal, not its open files, not its folder. What the shell starts
// is no child of that keeper, so it outlives the lease where the shell lets it.
//   the keeper is killed:  whoever looks at the pool next ends what carries the job's number, then frees the devices
//   the front is killed:   while it waits, the job leaves the queue; later it is gone anyway
#pragma once

#include <functional>
#include <string>

#include "confine/visibility.h"
#include "run/caretaker.h"
#include "run/relay.h"
#include "run/run_spec.h"

namespace remuda::run {

/// Waits until `shell` has its devices, and then writes to stdout what `words` makes of the job's environment. Returns
/// 0 then, else the exit code of run_front(). `report` takes what happens until then, last Kind::started or
/// Kind::ended. The caller has no pool open and one thread.
Result<int> hold_for(const RunSpec& spec, const Look& look, const process::ProcessId& shell,
                     const std::function<std::string(const confine::Visibility&)>& words, const Report& report);

}  // namespace remuda::run
