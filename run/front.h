// The front: `remuda run` as its caller sees it. It starts a keeper, forwards signals, and ends as the job does.
#pragma once

#include <functional>

#include "run/caretaker.h"
#include "run/relay.h"
#include "run/run_spec.h"

namespace remuda::run {

/// Whether another keeper can go on with the job, as all of it is kept; asked after each message.
using IsKept = std::function<bool()>;

/// Runs a job from its submission to its end and returns the exit code: the job's own, 128 plus the signal's number
/// where a signal ended it, or kNever, kNotNow (place/place.h), kOwnFailure, kCannotExecute, kNotFound
/// (process/spawn.h). `report` receives every message, last Kind::ended. The caller has no pool open, one thread, and
/// makes no other children until this returns; those it has already are left alone.
///
/// A job that outlives its keeper and `is_kept` is left to the agent when it has to wait: this then returns 0.
Result<int> run_front(const RunSpec& spec, const OpenPool& open, const Report& report, const IsKept& is_kept = nullptr);

}  // namespace remuda::run
