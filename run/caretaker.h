// Caretaker: a pool together with the state of its machine. Every access to a pool goes through it, so that jobs whose
// keepers died are cleaned up by the next process that uses the pool.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "policy/policy.h"
#include "pool/pool.h"
#include "pool/transitions.h"

namespace remuda::run {

/// Reads the machine.
using ReadMachine = std::function<Result<Inventory>()>;

/// One thread. As with Pool, none may be open when a process forks children that open one.
class Caretaker {
 public:
  /// `read` reads the machine; it is called once here, by read_machine(), and before each decision for which the last
  /// reading is too old. `live`: the machine is this one, so that jobs of its other pools count.
  static Result<Caretaker> open(const std::string& folder, ReadMachine read, bool live);

  /// Reads the machine. Only this shows which devices other processes and jobs of other pools use now.
  Result<void> read_machine();
  /// The same, unless it was read less than 2 seconds ago.
  Result<void> read_machine_if_old();
  /// The last reading. References into it are invalid after the next one.
  const Inventory& inventory() const { return inventory_; }
  pool::Pool& pool() { return pool_; }
  const std::string& folder() const { return folder_; }
  /// The policy of the pool. An error where its file is wrong: then nothing enters the queue, and no job starts.
  const Result<policy::Policy>& policy() const { return policy_; }

  /// Devices that jobs of other pools have (pool/claim.h), and those in use by processes that hold no lease. Where a
  /// device has a lease, its processes are taken to be the lease's.
  std::vector<place::Held> held_without_lease(const pool::PoolState& state) const;

  /// The job that this process is a part of, if that job's device filter applies to this process too. This process then
  /// sees only a part of the machine, and change() starts no jobs: a process that sees the whole machine starts them.
  static std::optional<int64_t> confining_job(const pool::PoolState& state);

  /// Ends the jobs whose keepers are gone, kills the processes they left, and starts the jobs whose turn it is then.
  /// Leaves the jobs as they are where every keeper lives. Stops this user's sharing daemons that no job uses any more.
  /// Returns the state afterwards.
  Result<pool::PoolState> tidy();

  /// Applies `transition` and then starts the jobs whose turn it is, in one change, which `accept` may refuse when it
  /// sees the result. The keepers of started jobs are woken by SIGCHLD, those of other users by the pool's bell. Reads
  /// the machine first where the last reading is old; where it cannot be read, `transition` is applied and nothing is
  /// started.
  Result<void> change(
      const std::function<Result<void>(pool::PoolState&)>& transition, const std::vector<int64_t>& with = {},
      const std::function<Result<void>(const pool::PoolState&)>& accept = [](const pool::PoolState&) {
        return Result<void>{};
      });

 private:
  Caretaker(pool::Pool pool, std::string folder, ReadMachine read, bool live, Inventory inventory);
  std::vector<process::ProcessId> start_jobs(pool::PoolState& state) const;
  Result<std::vector<int64_t>> reap_once();
  Fd take_place();
  Result<pool::PoolState> tidy_jobs();

  pool::Pool pool_;
  std::string folder_;
  ReadMachine read_;
  bool live_;
  Inventory inventory_;
  std::vector<place::Held> claimed_;  ///< by other pools
  Result<policy::Policy> policy_;     ///< as it was when the machine was read last
  double read_at_s_;                  ///< on the steady clock
  double race_until_s_ = 0;           ///< likewise: the line of those who wait for a change does not move
};

}  // namespace remuda::run
