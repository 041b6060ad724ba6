// Named pipes that show that a process lives: the kernel knows whether one is open for reading. Internal to pool.
#pragma once

#include <string>

#include "pool/files.h"

namespace remuda::pool {

/// Whether a process holds it open for reading; true where that cannot be known.
bool has_reader(const Folder& folder, const std::string& name);

/// Whether it was made a moment ago: the process that made it may be about to open it.
bool is_new(const Folder& folder, const std::string& name);

}  // namespace remuda::pool
