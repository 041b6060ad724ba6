// Processes as /proc tells of them: whose they are, what they run, since when.
#pragma once

#include <string>

#include "device/device.h"

namespace remuda::probe {

/// The user, command and start time of `pid`, each missing with its reason when /proc does not tell: the process has
/// ended, or belongs to another pid namespace. A user without a name is told by number; a command without arguments
/// (a kernel thread) by its short name. The rest of Process is left to the caller.
Process describe_process(int pid, const std::string& proc = "/proc");

/// What a command line may be in a table: each run of NULs and control characters is one space, no byte that is not
/// UTF-8, at most 200 bytes, cut between characters.
std::string clean_command(std::string_view text);

}  // namespace remuda::probe
