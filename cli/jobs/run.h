// remuda run: wait for devices that suit, hold them, run a command on them, give them back.
#pragma once

#include "cli/command.h"
#include "cli/machine.h"
#include "run/run_spec.h"

namespace remuda::cli {

/// Runs a job as `remuda run` does, with its progress on stderr, and returns the exit code. `how_to_end`: half a
/// sentence for people, printed after the devices.
Result<int> run_job(run::RunSpec spec, const MachineFlags& machine, bool quiet, const std::string& how_to_end = "");

/// Notes on stderr that CUDA_VISIBLE_DEVICES or a similar variable does not choose the devices here, where the caller
/// has set one and named no device with --device. Not within a job, whose variable remuda has set.
void note_ignored_variable(const run::RunSpec& spec);

/// Notes on stderr that the caller is itself a job of this pool, whose devices no new job can get.
void note_within_job(const run::RunSpec& spec);

/// The spec completed by the caller's user and folder, and the machine's pool.
Result<run::RunSpec> for_caller(run::RunSpec spec, const MachineFlags& machine);

}  // namespace remuda::cli
