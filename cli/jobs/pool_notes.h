// What is drained and what is leased, for those who look at the devices.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "cli/machine.h"
#include "pool/state.h"

namespace remuda::cli {

/// The pool of a machine, as far as this user can see it.
struct SeenPool {
  pool::PoolState state;  ///< empty where there is no pool
  std::string obstacle;   ///< why it is not known; empty: it is
};
SeenPool see_pool(const MachineFlags& machine);

/// A line for each device that is drained, "gpu:3 is drained: its fan is broken (root, 2 h ago)", or leased, "gpu:0 is
/// leased to alice (job 12)"; or one that says why that is not known. With an id: of that device only.
std::string pool_notes(const SeenPool& pool, const Inventory& inventory, const std::string& device = "");

/// Who has leased devices.
struct Leases {
  bool is_known = true;
  std::map<std::string, std::string> holders;  ///< by id of the device: "alice (job 12)"
};
Leases leases_of(const SeenPool& pool);

/// Adds leases and drains, where there are some, or why they are not known; of one device, or all where that is empty.
void add_pool(const SeenPool& pool, const std::string& device, Json& json);

}  // namespace remuda::cli
