// The keeper: the process of `remuda run` that waits for the job's turn, starts it, and ends with it.
//
// It is a child of the front (run/front.h), in a process group of its own, so that signals from a terminal reach only
// the front and the job. It owns the job in the pool: while it lives, no other process ends the job.
//   it is killed:     the kernel kills the job's first processes; the front, a subreaper, kills the rest and cleans up
//   front is killed:  it kills the job and records the end
//   both are killed:  the next process that uses the pool does that (run/caretaker.h)
#pragma once

#include "run/caretaker.h"
#include "run/job_run.h"
#include "run/run_spec.h"

namespace remuda::run {

/// Runs in the keeper's process, to its end. Sends the front a message for each event, last Message::Kind::ended.
void keep(const RunSpec& spec, const OpenPool& open, Fd front, const Inherited& inherited);

}  // namespace remuda::run
