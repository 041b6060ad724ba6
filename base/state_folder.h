// The folder in which remuda keeps files between runs, one for each user.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace remuda {

/// "remuda" under XDG_STATE_HOME, else under ~/.local/state; nothing where neither variable names a folder. It need not
/// exist.
std::optional<std::string> state_folder();

/// Makes the folder, and those above it, with mode 0700 where they do not exist. `path` is absolute.
Result<void> make_folder(const std::string& path);

}  // namespace remuda
