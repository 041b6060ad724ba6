// remuda hold --export: devices for the shell that runs it, by variables for it to take over.
#pragma once

#include <string>

#include "cli/machine.h"
#include "confine/visibility.h"
#include "run/run_spec.h"

namespace remuda::cli {

/// Lines of sh that set and unset these, each value quoted.
std::string export_text(const confine::Visibility& environment);

/// Lines of sh that unset all that export_text() names.
std::string unset_text(const confine::Visibility& environment);

/// Holds what `spec` asks for until the process `pid` ends; 0: the shell that runs this program. Returns the exit code;
/// unless that is 0, it prints a line of sh that returns it, so that `eval` fails as the command did.
Result<int> hold_for_shell(run::RunSpec spec, const MachineFlags& machine, int pid);

/// The job that a held shell's variables name. A usage error where they name none, or one of another machine's pool.
Result<int64_t> held_job(const MachineFlags& machine);

}  // namespace remuda::cli
