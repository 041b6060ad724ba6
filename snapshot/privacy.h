// Privacy: what a user may see of other users' jobs and processes: who, what they hold, for how long, but no command
// lines, folders or environments.
#pragma once

#include <string>

#include "base/json.h"

namespace remuda::snapshot {

/// Takes that out of a live snapshot, for `user`. What is left is listed, not what is taken: a field that is added to
/// jobs later is hidden until somebody decides otherwise. Pure.
void hide_from(const std::string& user, Json& snapshot);

}  // namespace remuda::snapshot
