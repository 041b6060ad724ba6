// Detach: a job that goes on in the background when its caller has ended.
#pragma once

#include <functional>

#include "run/message.h"

namespace remuda::run {

using Tell = std::function<void(const Message&)>;

/// Runs `front` (run/front.h) in a process and a session of its own, with /dev/null in place of stdin, stdout and
/// stderr. Returns the first that it tells: Kind::waiting or Kind::started once the job is in the pool, from when on it
/// needs its caller no more; Kind::ended where it is not. The caller has no pool open and one thread.
Result<Message> detach(const std::function<Result<int>(const Tell&)>& front);

}  // namespace remuda::run
