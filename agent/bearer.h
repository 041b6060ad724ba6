// Bearers: to whom what a process costs the agent is counted: its connections, its turns, looks at what it has open.
//
// Not by user id alone, as who may have containers has thousands of these. The kernel says in whose slice of systemd a
// process is, which no user leaves; where it is in none, the file subuid(5) says whose range of ids its own is in.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process/user_name.h"

namespace remuda::agent {

/// The user whose slice a process is in, by its cgroups as /proc/PID/cgroup has them; nothing where it is in none.
/// Pure.
std::optional<int> slice_owner(std::string_view memberships);

/// One thread.
class Bearers {
 public:
  explicit Bearers(std::string subuid = "/etc/subuid") : file_(std::move(subuid)) {}

  /// For a process of this user: the number of a user, or the name by which that file has them. `is_named`: the user id
  /// is known to have a name of its own, so that it is no container's. Root bears what is root's, whose slice it is in.
  std::string of(int uid, std::optional<int> slice, bool is_named = false);

 private:
  void read();

  std::string file_;
  timespec read_at_{};  ///< when the file was changed that was read; all zero: none was
  std::vector<process::UserRange> ranges_;
};

}  // namespace remuda::agent
