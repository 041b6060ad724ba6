// A small file of the user's own that is kept of a job: whole or not there, and readable by the user alone.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace remuda::cli {

/// Replaces what is there. With `survives`, also after a loss of power: it is synced, which takes a disk some time.
Result<void> write_kept_file(const std::string& path, std::string_view text, bool survives);

/// Never waits, whatever lies there. A usage error, "WHAT was not kept", where there is none.
Result<std::string> read_kept_file(const std::string& path, const std::string& what);

}  // namespace remuda::cli
