// The pool of a machine as one opens it who reads devices every second, and must not be held up by an agent.
#pragma once

#include "cli/machine.h"
#include "run/caretaker.h"

namespace remuda::cli {

/// As open_pool(), where `read` reads the machine. Where an agent has the pool open, this takes no longer than a second
/// if it does not answer (an error of kind `unavailable`), and what is asked of it later some seconds (wire/client.h).
Result<run::Caretaker> open_watched_pool(const MachineFlags& flags, const pool::ReadMachine& read);

}  // namespace remuda::cli
