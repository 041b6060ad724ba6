// Where the folders of pools are. Internal to pool, except pool_folder() of pool.h.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "pool/shared_pool.h"

namespace remuda::pool {

struct PoolPlaces {
  std::string shared = kSharedPool;            ///< the pool for all users
  std::string machine_id = "/etc/machine-id";  ///< file that names this machine, whatever its host is called
};

/// As pool_folder(), with these places.
Result<std::string> pool_folder_at(const PoolPlaces& places, const std::string& machine_file);

/// As shared_pool_obstacle(), likewise.
std::optional<PoolObstacle> shared_pool_obstacle_at(const std::string& shared);

}  // namespace remuda::pool
