// The secret by which the ranks of a job know each other.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::workers {

/// 32 bytes from the kernel's random source, in hexadecimal.
Result<std::string> make_secret();

}  // namespace remuda::workers
