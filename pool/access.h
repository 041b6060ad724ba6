// Access: what the commands and keepers of a user need of a pool, whoever has it open: this process itself
// (run/file_pool.h), or an agent that it speaks to (wire/client.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pool/claim.h"
#include "pool/operation.h"
#include "pool/state.h"
#include "process/process_id.h"

namespace remuda::pool {

/// One thread, and no use after a fork.
class Access {
 public:
  Access() = default;
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
  virtual ~Access() = default;

  /// The pool's folder: its name for jobs, and for those that hold claims on devices.
  virtual const std::string& folder() const = 0;
  /// The folder below which logs of this user's jobs are that name none (pool/logs.h).
  virtual const std::string& log_folder() const = 0;
  /// Whether an agent has it open, which by itself starts jobs, holds the processes of each together and keeps them
  /// from other devices.
  virtual bool is_served() const = 0;
  /// What claims of other pools (pool/claim.h) mean to its jobs.
  virtual OthersClaims others_claims() const { return OthersClaims::count; }
  /// Whether jobs with parts of devices may share them through daemons (share/sharing.h): an agent's policy says so.
  virtual bool may_have_daemons() const = 0;

  /// The state now. Of other users' jobs, some fields may be empty.
  virtual Result<PoolState> read() = 0;
  /// The same, at least with all jobs of this user.
  virtual Result<PoolState> read_own() = 0;
  /// The same without jobs that wait, except this one: the leases, those who hold them, and one job whatever its state.
  virtual Result<PoolState> read_around(int64_t job) = 0;
  /// One job, also an ended one, as long as the pool remembers it.
  virtual Result<std::optional<Job>> find(int64_t id) = 0;
  /// The newest ended jobs, by id, descending.
  virtual Result<std::vector<Job>> ended(int at_most) = 0;

  /// Applies the operation, and where it may let jobs start, starts them in the same change, all of it or nothing.
  /// Keepers whose jobs are started or cancelled are woken.
  virtual Result<Applied> apply(const Operation& operation) = 0;
  /// Whether the last call, which failed, may succeed later without a change to this program.
  virtual bool may_try_again() const = 0;
  /// Makes this process one of a running job of this user: held together with its processes, and kept from devices that
  /// the job was not granted, with all that it starts, for good, and killed once the job's own processes have ended. It
  /// must take on the job's environment itself. A usage error where the job does not run, or is another user's.
  virtual Result<void> enter(int64_t job) = 0;
  /// Makes a process of this user, and all of the user's that descends from it, a part of a running job that this
  /// process keeps, as enter() does. A usage error for one that is somebody else's, a job's already, or has a device
  /// open.
  virtual Result<void> bring(int64_t job, const process::ProcessId& process) = 0;
  /// Ends the jobs whose keepers are gone, with what is left of them.
  virtual Result<void> tidy() = 0;

  /// To be called once by a process that will keep jobs, before it submits the first: shows other processes that it
  /// lives. Returns a descriptor for its jobs to inherit; -1: none.
  virtual Result<int> become_keeper() = 0;
  /// To be called by the keeper of a job that waits, before each rest(): does for the pool what those who wait in it
  /// must do. Returns read_around(job).
  virtual Result<PoolState> attend(int64_t job) = 0;
  /// Waits until something may have changed for a job that waits; a descriptor of `readable` ends that, too.
  virtual Result<void> rest(int64_t job, const std::vector<int>& readable) = 0;
  /// Waits until `job` may have changed (0: any), one of `processes` has ended, a descriptor of `readable` is readable
  /// or hung up, a signal was handled, or `seconds` have passed. May return early, but does not spin.
  virtual Result<void> wait(int64_t job, const std::vector<process::ProcessId>& processes, double seconds,
                            const std::vector<int>& readable) = 0;
};

}  // namespace remuda::pool
