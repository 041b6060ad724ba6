// Pool: a PoolState in SQLite that many processes change at once; each change is applied completely or not at all.
//
// There is no daemon: each `remuda` process opens the file, changes it within one transaction, and rings the bell.
// A process that dies at any point leaves a pool that the next one can use. One thread per Pool.
//
// Forks: SQLite does not allow a child to use, or even close, a database that its parent opened. So a process that
// forks children which open a pool must have none open at that moment; open() aborts otherwise.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pool/state.h"

namespace remuda::pool {

class Pool {
 public:
  /// Opens or makes the pool in `folder` (made with mode 0700 if it does not exist; files take the folder's permissions
  /// for its group). An error of one sentence for a full disk, a folder that cannot be written, a file that is damaged
  /// or of another version; nothing is changed then.
  static Result<Pool> open(const std::string& folder);

  Pool(Pool&&) noexcept;
  Pool& operator=(Pool&&) noexcept;
  ~Pool();

  /// The state now. Cheap; takes no lock that a writer waits for.
  Result<PoolState> read();

  /// Reads the state, lets `transition` change it, and writes what changed, all in one transaction that excludes all
  /// other writers. An error from `transition`, or any other failure, leaves the pool as it was. Rings the bell when
  /// something changed. Waits at most 10 seconds for other writers.
  /// `with`: ended jobs that the state shall contain, too: for submit() those of awaited_by(), for cancel() the job
  /// itself.
  Result<void> change(const std::function<Result<void>(PoolState&)>& transition, const std::vector<int64_t>& with = {});

  /// The state as this Pool knows it since the last open(), read() or change(): for a process that is alone with the
  /// pool, the state now. Valid until the next of these calls.
  const PoolState& seen() const;
  /// The jobs that the last change() has added or changed, by id, ascending; none where it failed.
  const std::vector<int64_t>& changed() const;

  /// Whether the last call, which failed, may succeed later without a change to this program: the disk is full, other
  /// processes keep the database busy, an input or output error. A job that waits in the queue then tries again.
  bool may_try_again() const;
  /// Whether it failed as other processes kept the database busy.
  bool was_busy() const;
  /// Both are false until a call fails again.
  void forget_failure();
  /// For so long other writers are waited for, from here on.
  void set_patience(std::chrono::milliseconds patience);

  /// Takes the records of jobs that cannot be read out of the pool, each into a file of its folder, unread-JOB, and
  /// drains the devices that such a job had, as its processes may still use them. Returns a sentence for each. For a
  /// process that is alone with the pool.
  Result<std::vector<std::string>> set_aside(double now_s);

  /// One job, also an ended one; nothing where there is none, or where it ended too long ago: the pool keeps the last
  /// 10,000 ended jobs of each user, and 32 MiB of them, as long as all together are no more than 50,000 and 256 MiB.
  Result<std::optional<Job>> find(int64_t id);
  /// The newest ended jobs, by id, descending.
  Result<std::vector<Job>> ended(int at_most);
  /// The same, of those with ids below `below`; 0: of all.
  Result<std::vector<Job>> ended(int at_most, int64_t below);

  /// Waits until another Pool has changed what the last open(), read(), find() or change() of this one saw, until one
  /// of `processes` has ended, a descriptor of `readable` is readable or hung up, a signal was handled, or `seconds`
  /// have passed. No busy loop. With a process that has already ended this returns at once, so pass only keepers that
  /// reap() found alive.
  Result<void> wait(const std::vector<process::ProcessId>& processes, double seconds,
                    const std::vector<int>& readable = {});

 private:
  struct Impl;
  explicit Pool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The folder of the pool of the live machine: /var/lib/remuda if that is there and this user may write it (a pool for
/// all users), else remuda/pool-MACHINE under XDG_STATE_HOME (~/.local/state unless set), where MACHINE is the id in
/// /etc/machine-id, or the host name where there is none. The pool of a recorded machine is the user's own, in
/// remuda/pools, named by machine and the file's path. Each machine has its own, as homes may be shared between
/// machines and a pool may not. A pool that an older program named after the host is moved there once no job is in it.
Result<std::string> pool_folder(const std::string& machine_file);
/// The same, but never the pool for all users.
Result<std::string> own_pool_folder(const std::string& machine_file);

}  // namespace remuda::pool
