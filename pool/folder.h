// Where pools stand. Internal to pool, except pool_folder() of pool.h.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "pool/shared_pool.h"

namespace remuda::pool {

/// As pool_folder(), where the pool for all users would stand in `shared`.
Result<std::string> pool_folder_beside(const std::string& shared, const std::string& machine_file);

/// As shared_pool_obstacle(), likewise.
std::optional<PoolObstacle> shared_pool_obstacle_at(const std::string& shared);

}  // namespace remuda::pool
