// remuda ps and queue: which jobs hold which devices, and which wait.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "device/inventory.h"
#include "place/held.h"
#include "pool/state.h"
#include "pool/usage.h"

namespace remuda::cli {

/// {"leases": [...], "waiting": [...], "fairness": {...}}; devices in use without a lease are among the leases, with
/// "holder" in place of a job.
Json pool_json(const pool::PoolState& state, const std::vector<place::Held>& foreign, const Inventory& inventory,
               double now_s, const pool::Policy& policy = {});

/// A line for each device that is held; see Table::text() for `width`.
std::string leases_text(const pool::PoolState& state, const std::vector<place::Held>& foreign,
                        const Inventory& inventory, double now_s, size_t width);

/// The states of an array's indices as text, by the number of the array.
using ArrayTexts = std::map<int64_t, std::string>;

struct Queue {
  const pool::PoolState& state;
  const Inventory& inventory;
  const std::vector<place::Held>& foreign;  ///< devices in use without a lease
  const ArrayTexts& arrays;                 ///< those that have not ended; their jobs get no lines of their own
  pool::Policy policy = {};                 ///< decides the order
};
/// A line for each job that waits, in the order of their turns.
std::string queue_text(const Queue& queue, double now_s, size_t width);

}  // namespace remuda::cli
