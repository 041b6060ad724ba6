// DeviceGuard: keeps the processes of a whole machine from device files that they were not let to.
//
// A BPF program at the root of the cgroups of version 2 is asked whenever a process opens or makes a character device.
// It allows what is not guarded, and all that root does: a process whose real user id is 0 outside of containers with
// user ids of their own. Other processes may use a guarded device from a cgroup that was let to it, or from below one.
// What a process has opened it keeps, and can hand on.
//
// The kernel keeps it in force, and no process: a program that is attached to a cgroup stays as long as that does, with
// the map that has its rules. So when the process that has attached it is killed, no device comes open, a cgroup that
// was let to one stays so, and root is not locked out. The next process finds program and map by their name, goes on
// with the map, and replaces the program in one step. (A bpf_link would end with its process unless it was pinned, in a
// file system that may not be mounted, by a file that may be lost.) A restart of the machine removes it.
//
// Takes Linux 6.1, the first that gives such programs the cgroups above a process.
#pragma once

#include <compare>
#include <cstdint>
#include <linux/bpf.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "confine/bpf_map.h"
#include "confine/device_nodes.h"

namespace remuda::confine {

enum class GuardMode {
  report,  ///< what would be refused is told, and allowed
  refuse,
};

/// The kernel's number of a cgroup of version 2, never used again until the machine is started anew; 0 where there is
/// no such folder.
uint64_t cgroup_id(const std::string& folder);

/// A device is guarded (cgroup 0), or a cgroup is let to it. A key of the kernel's map: its bytes are no others.
struct GuardRule {
  uint64_t cgroup = 0;
  uint32_t major = 0, minor = 0;
  auto operator<=>(const GuardRule&) const = default;
};

/// A use of a guarded device that was refused, or, by GuardMode::report, would be.
struct Refused {
  int uid = 0, pid = 0;
  DeviceNode node;
  std::string command;  ///< the process's name, without characters that cannot be shown
};

/// The program, with descriptors of its two maps. Pure.
std::vector<bpf_insn> guard_program(GuardMode mode, int rules, int refused);

/// One thread.
class DeviceGuard {
 public:
  /// Puts it in force at the cgroup in `root`, with the rules of the one of that name that is there. `name`: at most
  /// bpf::kLongestName letters, digits and '_', by which no other pool's guard is taken for this one's.
  static Result<DeviceGuard> attach(const std::string& root, const std::string& name, GuardMode mode);
  /// Takes the one of that name away. Returns whether there was one.
  static Result<bool> remove(const std::string& root, const std::string& name);

  /// Those in force.
  const std::set<GuardRule>& rules() const { return known_; }
  /// Brings these in force in place of those before: cgroups are let to devices first, then devices are guarded. An
  /// error where not all of them are: the kernel has no room for more.
  Result<void> set_rules(const std::set<GuardRule>& rules);
  /// What was refused since the last call; of a process and a device once. The kernel remembers a few thousand.
  std::vector<Refused> take_refused();

 private:
  struct Attempt {  ///< a key of the kernel's map
    uint32_t uid = 0, pid = 0, major = 0, minor = 0;
    auto operator<=>(const Attempt&) const = default;
  };
  DeviceGuard(bpf::Map rules, bpf::Map refused);

  bpf::Map rules_, refused_;
  std::set<GuardRule> known_;
  std::set<Attempt> told_;
};

}  // namespace remuda::confine
