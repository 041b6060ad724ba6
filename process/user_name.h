// The name of a user, for people.
#pragma once

#include <string>

namespace remuda::process {

/// The login name, without characters that cannot be shown; of a user without one, the number.
std::string user_name(int uid);

}  // namespace remuda::process
