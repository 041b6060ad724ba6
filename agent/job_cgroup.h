// The cgroup of a job that the agent has started: only root moves processes out of it, and it says which processes are
// the job's, whatever these say of themselves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "confine/device_nodes.h"
#include "confine/host_limits.h"
#include "device/inventory.h"
#include "process/process_id.h"

namespace remuda::agent {

/// One that was made, or why there is none.
struct JobCgroup {
  std::string folder;  ///< empty: none
  bool devices_enforced = false;
  int files_denied = 0;
  std::string obstacle;              ///< a clause: why not all of it is in force
  std::vector<std::string> further;  ///< in other trees, for what the job has of the host
  confine::HostLimited host;

  std::vector<std::string> all() const;
};

/// Makes one below the agent's own, with the device filter where `withheld` is given. Its folder is the job's user's,
/// who can make cgroups in it but move no process: only so does podman leave a container where it was started, as
/// systemd would put it elsewhere otherwise. Each has a name of its own, which
/// begins with that of the job's pool: the keeper of a job that is queued again may still be in the one before.
JobCgroup make_job_cgroup(const std::string& pool, int64_t job, int uid,
                          const std::optional<confine::Withheld>& withheld, const confine::HostShare& share = {});
/// What its user had of it, once the job has ended: from then on nothing is made in it, and it can be removed.
void take_back(const std::string& cgroup);

/// The cgroups of a process, a line for each tree, as the kernel writes them (cgroups(7)); empty where it has ended.
std::string memberships_of(const process::ProcessId& process);
/// Whether these are of a process in the cgroup, or in one below it. Pure.
bool is_member(const std::string& cgroup, const std::string& memberships);

enum class Pace {
  in_pieces,  ///< where there are many, a hundred: thousands that end at once take all processors from others
  at_once     ///< stopped meanwhile, so that none is born: for those whose number does not fall
};
/// SIGKILL for all its processes but one. Others, and what is born meanwhile, may be left: to be called until
/// cgroup_members() gives none.
void kill_members(const std::string& cgroup, const std::optional<process::ProcessId>& but, Pace pace = Pace::at_once);

/// Those of the pool where the agent makes them, of all jobs.
std::vector<std::string> job_cgroups(const std::string& pool);
/// Those that were made for the same job as this one.
std::vector<std::string> further_cgroups_of(const std::string& cgroup);

/// The nodes of these devices that other jobs are kept from.
std::vector<confine::DeviceNode> nodes_of(const Inventory& inventory, const std::vector<std::string>& devices);

}  // namespace remuda::agent
