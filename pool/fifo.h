// Named pipes as signs of life: the kernel knows whether anybody reads one. Internal to pool.
#pragma once

#include <string>

namespace remuda::pool {

/// Whether somebody holds it open for reading; true where that cannot be told.
bool has_reader(const std::string& path);

/// Whether it was made just now: its maker may be about to open it.
bool is_new(const std::string& path);

}  // namespace remuda::pool
