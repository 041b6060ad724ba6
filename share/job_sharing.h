// JobSharing: how the devices of one job are shared, from before its first process to after its last.
//
// A sharing daemon is in use as long as the pool holds a lease of its user for a part of its device. A job enters the
// pool before it starts or joins a daemon. Before it stops one, it takes the daemons' lock and reads the pool again. So
// no daemon is stopped while a job uses it, in whatever order jobs start and end.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pool/pool.h"
#include "process/spawn.h"
#include "share/sharing.h"

namespace remuda::share {

/// The keeper's; one thread. The pool outlives it.
class JobSharing {
 public:
  struct Options {
    std::string folder;   ///< of the pool
    double share = 1;     ///< of each device
    bool parted = false;  ///< each process sees one of the devices
    bool live = true;     ///< the machine is this one
  };
  JobSharing(pool::Pool& pool, Options options) : pool_(pool), options_(std::move(options)) {}

  /// Decides, and starts the daemons that are needed. A line for the user, the first time it says something new: what
  /// is shared how, and which limits are hard. Nothing where all devices are whole.
  std::string begin(const Inventory& inventory, int64_t job, const std::vector<std::string>& devices);
  /// The variables to add for a process that sees `devices`.
  process::Environment environment(const std::vector<std::string>& devices) const;
  /// The job's last process is gone, and the job still in the pool. Stops the daemons that nobody else uses.
  void end();

 private:
  void record();
  Shared share(const pool::PoolState& state, const Device& device, size_t devices);

  pool::Pool& pool_;
  const Options options_;
  int64_t job_ = 0;
  std::vector<Shared> shared_;
  std::vector<std::pair<std::string, process::Environment>> daemons_;  ///< by device: how to reach it, and the limits
  std::string told_;
};

/// What begin() will say of a job that is granted these, where nothing goes wrong and no other user is in the way. The
/// daemon of a machine that is not this one (`live` false) is taken to be installed. `parted`: each process sees one.
std::string expected_sharing(const Inventory& inventory, const std::vector<std::string>& devices, double share,
                             bool parted, bool live);

/// How a lease of the pool is shared. Pure.
Sharing sharing_of(const pool::PoolState& state, const pool::Lease& lease, const Inventory& inventory);

/// The devices of which jobs of the user have a part, those of the job `except` left out. Pure.
std::set<std::string> devices_shared_by(const pool::PoolState& state, int uid, int64_t except = 0);
/// The user who had a part of the device before this job and is another one; empty where there is none. Pure.
std::string other_sharer(const pool::PoolState& state, const std::string& device, int64_t job);

/// Stops the daemons of this user that no job uses, as a keeper that was killed could not. A daemon that cannot be
/// stopped is left for the next call.
void stop_unused_daemons(const std::string& folder, pool::Pool& pool);

}  // namespace remuda::share
