// CgroupPlace: this process's position in the trees of cgroups, from the kernel's files in /proc.
//
// Two kinds of tree can be used: that of version 2, and of version 1 the one that controls devices, or has another
// controller. A machine may have both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace remuda::confine {

struct CgroupPlace {
  int version = 2;
  std::string mount;  ///< folder that shows the tree, or the part of it that can be seen here
  std::string own;    ///< folder of this process's cgroup, `mount` or below it
  bool operator==(const CgroupPlace&) const = default;
};

/// From the texts of /proc/self/mountinfo and /proc/self/cgroup (proc(5), cgroups(7)): version 2 first. A tree that is
/// not mounted, or mounted without the part this process is in, is left out. Of version 1, the tree that has the
/// controller is meant. Pure.
std::vector<CgroupPlace> cgroup_places(std::string_view mountinfo, std::string_view memberships,
                                       const std::string& controller = "devices");

/// Those of this process. None where /proc does not show them.
std::vector<CgroupPlace> own_cgroup_places(const std::string& controller = "devices");

}  // namespace remuda::confine
