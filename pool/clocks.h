// Clocks: how long jobs have run where the wall clock is set meanwhile. The times of a pool are those of the wall
// clock, as people read them; each running job notes by how much that was ahead of the clock that runs since the
// machine has started, and nobody sets. Once that has changed, the times of all that runs move with it: what is counted
// from them, charges and limits, is time that has passed. Pure, but for
// Clocks::now().
#pragma once

#include <string>

#include "pool/state.h"

namespace remuda::pool {

struct Clocks {
  double wall_s = 0;  ///< since 1970
  double boot_s = 0;  ///< since the machine has started, with the time that it slept
  std::string boot;   ///< which start that was, and for whom: a container may have a clock of its own

  static Clocks now();
};

/// Before a change: moves the times of what runs and waits, and those of usages, to what the wall clock says now.
/// Nothing that was noted at another start of the machine, and nothing while no job runs that has noted the clocks.
void follow_clocks(PoolState& state, const Clocks& clocks);
/// After a change: notes the clocks with the jobs that it has started, and with those that have outlived a restart.
void note_clocks(PoolState& state, const Clocks& clocks);

/// When a lease began, on the clock that nobody sets: the same as long as it lasts. By the wall clock where its job has
/// noted none.
double began_s(const PoolState& state, const Lease& lease);
/// Whether two such times are of one beginning: as sums, they differ in their last digits.
bool is_same_beginning(double one_s, double other_s);

}  // namespace remuda::pool
