// Where pools stand. Internal to pool, but for pool_folder() of pool.h.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::pool {

inline constexpr const char* kSharedPool = "/var/lib/remuda";

/// As pool_folder(), where the pool for all users would stand in `shared`.
Result<std::string> pool_folder_beside(const std::string& shared, const std::string& machine_file);

}  // namespace remuda::pool
