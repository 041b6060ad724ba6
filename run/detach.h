// Detach: a job that goes on in the background when its caller has ended.
#pragma once

#include <functional>

#include "run/relay.h"

namespace remuda::run {

/// Runs `front` (run/front.h) in a process and a session of its own, with /dev/null in place of stdin, stdout and
/// stderr, and without the caller's other descriptors: one may be a lock, or a pipe that another process reads to its
/// end. Returns the first message: Kind::waiting or Kind::started once the job is in the pool, from when on it no
/// longer needs its caller; Kind::ended where the job did not enter the pool. The caller has no pool open and one
/// thread.
Result<Message> detach(const std::function<Result<int>(const Report&)>& front);

}  // namespace remuda::run
