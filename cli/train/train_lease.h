// The lease that `remuda train` runs in, where `remuda run` or `remuda hold` has started it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/machine.h"

namespace remuda::cli {

struct CallersLease {
  int64_t job = 0;
  std::vector<std::string> devices;    ///< ids; never empty
  std::vector<std::vector<int>> cpus;  ///< of each of them that is a CPU device
};

/// From the environment; nothing outside of a lease. A usage error where that lease is of another machine than
/// this one; a recorded `machine` is simply not that of the lease.
Result<std::optional<CallersLease>> callers_lease(const MachineFlags& machine);

/// The inventory as the lease means it. A process of the lease is bound to its cores, and would take those for all that
/// there are: so the CPU devices become those of the lease, with the cores they have there.
Inventory within(const CallersLease& lease, Inventory inventory);

}  // namespace remuda::cli
