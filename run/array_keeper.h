// The keeper of an array: the process that holds the array's own job in the pool, for its front.
#pragma once

#include "run/caretaker.h"
#include "run/front_link.h"
#include "run/run_spec.h"

namespace remuda::run {

/// Runs in the keeper's process, to its end. Sends the front Kind::started with the array's number, and as status how
/// many indices may wait or run at once; Kind::ended once a user has cancelled the array, or where it cannot enter the
/// pool. Receives Kind::progress (text for `remuda why`) and Kind::ended (how the array ended); when the front is gone,
/// the array has ended.
void keep_array(const RunSpec& spec, const OpenPool& open, Fd front);

}  // namespace remuda::run
