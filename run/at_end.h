// What a user wants done once a job has ended: `remuda run --at-end COMMAND` and `--mail ADDRESS`.
//
// It is done by a process of the user, the job's keeper, or the front where that was killed; never by an agent. Each
// thing has a minute; what it writes goes where the job's output went: to its log, where it has one.
#pragma once

#include <string>

#include "pool/access.h"
#include "run/run_spec.h"

namespace remuda::run {

/// How long the command may take, and the program that sends mail; then it is killed, with all of its process group.
inline constexpr double kMostAtEnd_s = 60;

inline bool has_end_to_report(const RunSpec& spec) { return !spec.job.at_end.empty() || !spec.job.mail.empty(); }

/// Runs Job::at_end of `spec` by /bin/sh, in the job's folder, with variables that say how the job `id` of the pool has
/// ended (REMUDA_ENDED_..., base/env.h), and waits for it; then sends Job::mail a message. Does nothing where the pool
/// does not have the end of the job. Returns sentences about what went wrong; empty where nothing did.
std::string report_end(pool::Access& pool, const RunSpec& spec, int64_t id, double most_s = kMostAtEnd_s);

}  // namespace remuda::run
