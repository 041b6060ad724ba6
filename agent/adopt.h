// How an agent takes over a pool that its users had open as files.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::agent {

/// Makes the pool's folder where there is none, and the pool private. Jobs that run keep their leases until they end;
/// those whose keeper is no process of their user's, or does not have the pool open, end where the agent is root's.
/// Jobs that wait end, as their keepers cannot reach the pool any more. Returns a sentence about what was taken over;
/// empty where nothing was.
Result<std::string> adopt_pool(const std::string& folder);

}  // namespace remuda::agent
