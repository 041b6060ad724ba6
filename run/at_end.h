// What a user wants done once a job has ended: `remuda run --at-end COMMAND`.
#pragma once

#include <string>

#include "pool/access.h"

namespace remuda::run {

/// How long such a command may take; then it is killed, with all of its process group.
inline constexpr double kMostAtEnd_s = 60;

/// Runs Job::at_end of `asked` by /bin/sh, in the job's folder, with variables that say how the job `id` of the pool
/// has ended (REMUDA_ENDED_..., base/env.h), and waits for it. Does nothing where there is no such command, or the pool
/// does not have the end of the job. Returns a sentence about what went wrong; empty where nothing did.
std::string run_at_end(pool::Access& pool, const pool::Job& asked, int64_t id, double most_s = kMostAtEnd_s);

}  // namespace remuda::run
