// JobSharing: shares the devices of one job, from before its first process starts until after its last has ended.
//
// A sharing daemon is in use as long as the pool holds a lease of its user for a part of its device. A job enters the
// pool before it starts or joins a daemon. Before it stops one, it takes the daemons' lock and reads the pool again. So
// no daemon is stopped while a job uses it, in whatever order jobs start and end. Under an agent, that starts and stops
// them (agent/sharing_daemons.h), and jobs join those that it has recorded for them.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pool/access.h"
#include "process/spawn.h"
#include "share/sharing.h"

namespace remuda::share {

/// Used by the keeper; one thread. The pool outlives it.
class JobSharing {
 public:
  struct Options {
    std::string folder;   ///< of the pool
    double share = 1;     ///< of each device
    bool parted = false;  ///< each process sees one of the devices
    bool live = true;     ///< the machine is this one
  };
  JobSharing(pool::Access& pool, Options options) : pool_(pool), options_(std::move(options)) {}

  /// Decides how each device is shared, and starts the daemons that are needed. Returns a line for the user, when it
  /// differs from the last one: what is shared how, and which limits are hard. Empty where all devices are whole.
  std::string begin(const Inventory& inventory, int64_t job, const std::vector<std::string>& devices);
  /// The variables to add for a process that sees `devices`.
  process::Environment environment(const std::vector<std::string>& devices) const;
  /// To be called when the job's last process is gone and the job is still in the pool. Stops the daemons that no other
  /// job uses.
  void end();

 private:
  void record();
  std::string no_daemon(const pool::PoolState& state, const Device& device) const;
  Result<process::Environment> reach_daemon(const pool::PoolState& state, const Device& device);
  Shared share(const pool::PoolState& state, const Device& device, size_t devices);

  pool::Access& pool_;
  const Options options_;
  int64_t job_ = 0;
  std::vector<Shared> shared_;
  std::vector<std::pair<std::string, process::Environment>> daemons_;  ///< by device: how to reach it, and the limits
  std::string told_;
};

/// What begin() will return for a job that is granted these devices, if nothing fails and no other user shares them.
struct Expectation {
  double share = 1;              ///< of each device
  bool parted = false;           ///< each process sees one of the devices
  bool live = true;              ///< otherwise the daemon is assumed to be installed
  bool may_have_daemons = true;  ///< Access::may_have_daemons()
};
std::string expected_sharing(const Inventory& inventory, const std::vector<std::string>& devices,
                             const Expectation& expectation);

/// How a lease of the pool is shared. Pure.
Sharing sharing_of(const pool::PoolState& state, const pool::Lease& lease, const Inventory& inventory);

/// The devices of which jobs of the user, except the job `except`, have a part. Pure.
std::set<std::string> devices_shared_by(const pool::PoolState& state, int uid, int64_t except = 0);
/// Another user who had a part of the device before this job; empty where there is none. Pure.
std::string other_sharer(const pool::PoolState& state, const std::string& device, int64_t job);

/// Stops the daemons of this user that no job uses, such as those of a keeper that was killed. A daemon that cannot be
/// stopped is left for the next call.
void stop_unused_daemons(const std::string& folder, pool::Access& pool);

}  // namespace remuda::share
