// Confinement: how the processes of a job are kept together, and kept from devices that the job was not granted.
//
// A cgroup where this user may make one; in it a device filter where this user may set one. Otherwise a job is held
// together by its keeper alone (run/keeper.h), and devices are hidden by variables only (confine/visibility.h).
// `remuda ps --json` shows what is in force for a running job.
#pragma once

#include <optional>
#include <string>

#include "confine/cgroup.h"
#include "confine/device_nodes.h"
#include "confine/host_limits.h"

namespace remuda::confine {

/// The parts of it that are in force.
struct Confined {
  int cgroup = 0;        ///< version of the job's cgroup; 0: none
  bool devices = false;  ///< devices that were not granted cannot be opened
  int files_denied = 0;  ///< device files that the cgroup's filter keeps them from
  std::string obstacle;  ///< a clause: why not all of it is in force; empty when all is
  HostLimited host;      ///< of what the job has of the host

  /// "processes are held by a cgroup; devices that were not granted cannot be opened".
  std::string sentence() const;
};

class Confinement {
 public:
  Confinement() = default;
  /// For a job of a pool, as much as is possible. `withheld`: nothing on a recorded machine, of which neither devices
  /// nor `share` can be kept.
  static Confinement make(const std::string& pool, int64_t job, const std::optional<Withheld>& withheld,
                          const HostShare& share = {});

  /// The same, in a cgroup of that name, which no other job has.
  static Confinement make_named(const std::string& name, const std::optional<Withheld>& withheld,
                                const HostShare& share = {});

  const Confined& how() const { return how_; }
  /// To start processes in (ProcessSpec::cgroup); -1: none.
  int cgroup() const { return cgroup_ ? cgroup_->fd() : -1; }
  std::string folder() const { return cgroup_ ? cgroup_->folder() : ""; }
  /// So far.
  MemoryUse memory() const { return memory_use(folder(), further_folders()); }
  /// Those that its processes must join, too (ProcessSpec::further_cgroups), and their folders.
  std::vector<int> further() const;
  std::vector<std::string> further_folders() const;
  /// Leaves the cgroups in place for others to look after.
  void release();
  /// SIGKILL for all processes at once; nothing without a cgroup.
  void kill() const;

 private:
  std::optional<JobCgroup> cgroup_;
  std::vector<JobCgroup> further_;
  Confined how_;
};

/// What jobs started by this process would get. Makes a cgroup to find out, and removes it.
Confined try_confinement();

}  // namespace remuda::confine
