// remuda watch: reads the machine and its pool every second, and keeps what is to be known of the past.
#pragma once

#include <string>

#include "base/result.h"

namespace remuda::cli {

/// Where `remuda watch` of this user keeps the history of a machine, unless told otherwise: below the user's state
/// folder; for a recorded machine, in a folder of its name. An error where there is no state folder.
Result<std::string> watch_folder(const std::string& machine_file);

}  // namespace remuda::cli
