// remuda run: wait for devices that suit, hold them, run a command on them, give them back.
#pragma once

#include "cli/command.h"
#include "cli/machine.h"
#include "run/relay.h"
#include "run/run_spec.h"

namespace remuda::cli {

/// Runs a job as `remuda run` does, with its progress on stderr, and returns the exit code. `how_to_end`: half a
/// sentence for people, that stands behind the devices.
Result<int> run_job(run::RunSpec spec, const MachineFlags& machine, bool quiet, const std::string& how_to_end = "");

/// Says on stderr that CUDA_VISIBLE_DEVICES or its like chooses no devices here, where the caller has set one and named
/// none with --device. Within a job it is the job's own.
void note_ignored_variable(const run::RunSpec& spec);

/// The spec with what the caller and the machine add: the pool, who asks, and where.
Result<run::RunSpec> for_caller(run::RunSpec spec, const MachineFlags& machine);

/// Says on stderr what happens to a job; quiet: only what goes wrong. `how_to_end`: as above.
run::Report job_progress(bool quiet, const std::string& how_to_end = "");

/// TERM, SIGTERM or 15; nothing for anything else.
std::optional<int> parse_signal(const std::string& text);

}  // namespace remuda::cli
