// What the record of a job takes, so that none is too large to be sent and no user fills the agent's memory.
#pragma once

#include <cstddef>

#include "pool/job.h"

namespace remuda::agent {

/// The largest that a page takes as it is; of larger ones lists are left out. A submitted one has half of it at most.
inline constexpr size_t kLargestRecord = 192 << 10;

/// At least what it takes as JSON, in bytes: all fields that a job has are counted.
size_t record_size(const pool::Job& job);

}  // namespace remuda::agent
