// The keeper: the process of `remuda run` that waits for the job's turn, starts it, and ends with it.
//
// It is a child of the front (run/front.h), in a process group of its own, so that what a terminal sends reaches
// front and job alone. It holds the job's place in the pool: while it lives, nobody else ends the job.
//   it is killed:     the kernel kills the job's first processes; the front, a subreaper, kills the rest and tidies up
//   front is killed:  it kills the job and records the end
//   both are killed:  whoever looks at the pool next does that (run/caretaker.h)
#pragma once

#include "run/caretaker.h"
#include "run/front_link.h"
#include "run/run_spec.h"

namespace remuda::run {

/// What the keeper has from its front.
struct Inherited {
  int group = 0;      ///< the front's process group
  sigset_t mask{};    ///< signals that were held back before the front held back its own
  int lifeline = -1;  ///< the keeper's own, for the job's processes
};

/// Runs in the keeper's process, to its end. Tells the front everything, last Message::Kind::ended.
void keep(const RunSpec& spec, const Look& look, Fd front, const Inherited& inherited);

}  // namespace remuda::run
