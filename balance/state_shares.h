// State shares: how the parameters and the optimizer's state are divided among ranks of unlike roles. Pure.
//
// Ranks that compute own parts in proportion to their memory. Those with Role::state own all that fits in them, and the
// others the rest; those with Role::preprocess own nothing.
#pragma once

#include <span>
#include <vector>

#include "balance/role.h"

namespace remuda::balance {

struct StateOwner {
  Role role = Role::compute;
  double memory_bytes = 0;  ///< of the rank's device; 0: not known
};

struct StateBytes {
  double whole = 0;  ///< that each rank holds, whatever it owns
  double owned = 0;  ///< besides, of a rank that owns everything
};

/// A weight per rank, not all 0. Where the memory of a rank is not known, those that compute own equal parts, and one
/// with Role::state is taken to have room for everything.
std::vector<double> state_shares(std::span<const StateOwner> ranks, const StateBytes& bytes);

}  // namespace remuda::balance
