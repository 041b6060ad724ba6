// The front of an array: one `remuda run` that runs many jobs of one command, each with an index of its own.
//
// The array is a job itself: one that gets no devices, and waits in the pool until its last index has ended. Its number
// stands for all of them in `remuda cancel`, --after and `remuda logs`. Its keeper (run/array_keeper.h) looks after
// that job; each index has a front and a keeper of its own, made only when its turn is near.
//   this front is killed:             the kernel kills the fronts of the indices, and their keepers end their jobs
//   the array's keeper is killed:     this front ends the indices
//   the front of an index is killed:  that index counts as failed
#pragma once

#include "run/caretaker.h"
#include "run/relay.h"
#include "run/run_spec.h"

namespace remuda::run {

/// Runs `spec` once for each index of its array, and returns the exit code of the first index that failed, in order of
/// time, else 0. The caller must meet the conditions of run_front(), and have no children yet. Where spec.wait is
/// false, the first index starts now or none does.
Result<int> run_array_front(const RunSpec& spec, const OpenPool& open, const Report& report);

}  // namespace remuda::run
