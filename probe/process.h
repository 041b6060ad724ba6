// Processes as /proc shows them: their user, command and start time.
#pragma once

#include <string>

#include "device/device.h"

namespace remuda::probe {

/// The user, command and start time of `pid`, each missing with its reason when /proc does not show it: the process has
/// ended, or belongs to another pid namespace. A user without a name is given by number; a command without arguments (a
/// kernel thread) by its short name. The rest of Process is left to the caller.
Process describe_process(int pid, const std::string& proc = "/proc");

/// The command alone.
Reading<std::string> read_command(int pid, const std::string& proc = "/proc");

/// A command line made fit for a table: each run of NULs and control characters becomes one space; only UTF-8; at most
/// 200 bytes, cut between characters.
std::string clean_command(std::string_view text);

}  // namespace remuda::probe
