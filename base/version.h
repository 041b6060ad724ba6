// The project's version.
#pragma once

namespace remuda {

/// "0.1.0"
const char* version();

}  // namespace remuda
