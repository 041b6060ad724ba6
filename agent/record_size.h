// What the record of a job takes, so that none is too large to be sent and no user fills the agent's memory.
#pragma once

#include <cstddef>

#include "pool/job.h"

namespace remuda::agent {

/// About what it takes as JSON, in bytes: all that a user can make long is counted.
size_t record_size(const pool::Job& job);

}  // namespace remuda::agent
