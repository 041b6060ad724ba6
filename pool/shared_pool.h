// The pool for all users of a machine, and what keeps a user out of it.
#pragma once

#include <optional>
#include <string>

namespace remuda::pool {

/// Its folder, once an administrator has made it (docs/sharing.md).
inline constexpr const char* kSharedPool = "/var/lib/remuda";

struct PoolObstacle {
  std::string sentence;  ///< what it is, and what follows from it
  std::string remedy;    ///< the commands that fix it
};
/// Nothing where this user has that pool, or the machine has none.
std::optional<PoolObstacle> shared_pool_obstacle();

}  // namespace remuda::pool
