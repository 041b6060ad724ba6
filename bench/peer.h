// Other libraries' programs that time the same thing, run beside remuda's.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.h"

namespace remuda::bench {

/// Runs `command BYTES...` and reads the lines {"bytes":B,"seconds":T} it prints: seconds by bytes. An error when it
/// printed none.
Result<std::map<size_t, double>> run_peer(const std::string& command, std::span<const size_t> sizes);

}  // namespace remuda::bench
