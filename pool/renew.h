// A pool's file that other users could open, put in place of itself as one that they cannot.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::pool {

/// Closes the folder of a pool to all but this user, its owner. Where others could open the file, copies it, with all
/// that is in it, to a new one in its place: processes that have the old one open keep that, and can no longer change
/// the pool. Done at once or not at all; does nothing for a pool that was private, and none. Returns whether others
/// could open it. Nobody in this process has the pool open.
Result<bool> make_private(const std::string& folder);

}  // namespace remuda::pool
