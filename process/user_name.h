// The name of a user, for people.
#pragma once

#include <string>
#include <vector>

namespace remuda::process {

/// The login name, without characters that cannot be shown; of a user without one, the number.
std::string user_name(int uid);

/// The names of the groups that this process is in, without those that have none, ascending; 256 at the most.
std::vector<std::string> own_groups();
/// The same of any user, as the databases of users have it; none of a user without a name.
std::vector<std::string> groups_of(int uid);

}  // namespace remuda::process
