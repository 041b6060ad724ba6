// The name of a user, for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace remuda::process {

/// The login name, without characters that cannot be shown; of a user without one, the number.
std::string user_name(int uid);

/// Whether the databases of users say who that is, or that it is nobody; false where they cannot be asked.
bool is_told(int uid);

/// Whether the databases of users have it, or it is the number of a user. True where they cannot be asked.
bool is_user(const std::string& name);
/// The same of a group.
bool is_group(const std::string& name);

/// User ids of containers that somebody has, by name or number (subuid(5)).
struct UserRange {
  std::string owner;
  int64_t first = 0, count = 0;
  bool has(int uid) const { return uid >= first && uid - first < count; }
};
/// Those of the text of such a file; what is no range is left out.
std::vector<UserRange> user_ranges(std::string_view text);

/// Whose user ids of containers this one is among (subuid(5)); itself where it is nobody's, has a name of its own, or
/// is among root's: a container of root is not root.
int owner_of(int uid, const std::string& file = "/etc/subuid");

/// The names of the groups that this process is in, without those that have none, ascending; 256 at the most.
std::vector<std::string> own_groups();
/// The same of any user, as the databases of users have it; none of a user without a name.
std::vector<std::string> groups_of(int uid);

}  // namespace remuda::process
