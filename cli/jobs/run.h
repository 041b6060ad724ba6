// remuda run: wait for devices that suit, hold them, run a command on them, give them back.
#pragma once

#include "cli/command.h"
#include "cli/machine.h"
#include "run/message.h"
#include "run/run_spec.h"

namespace remuda::cli {

/// Runs a job as `remuda run` does, with its progress on stderr, and returns the exit code.
Result<int> run_job(run::RunSpec spec, const MachineFlags& machine, bool quiet);

/// The spec with what the caller and the machine add: the pool, how to look, who asks, and where.
Result<run::RunSpec> for_caller(run::RunSpec spec, const MachineFlags& machine);

/// Says on stderr what happens to a job; quiet: only what goes wrong.
std::function<void(const run::Message&)> job_progress(bool quiet);

/// TERM, SIGTERM or 15; nothing for anything else.
std::optional<int> parse_signal(const std::string& text);

}  // namespace remuda::cli
