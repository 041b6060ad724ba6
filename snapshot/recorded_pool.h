// RecordedPool: the pool that a recording tells of, so far that what becomes of its queue can be worked out as in a
// pool that is there: who holds what until when, who waits for what, and who has had how much within the recording.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "place/held.h"
#include "pool/state.h"
#include "pool/usage.h"

namespace remuda::snapshot {

struct RecordedPool {
  pool::PoolState state;
  std::vector<place::Held> held;  ///< without a lease, or drained
};

/// Of what a snapshot has: "jobs", "past" and "drains". What is not as it should be there is left out. Pure.
RecordedPool recorded_pool(const Json& host, const pool::Policy& policy);

}  // namespace remuda::snapshot
