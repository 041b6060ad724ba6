// FilePool: a pool whose file this process has open, together with all other processes of its users; there is no
// daemon.
//
// Every access to such a pool goes through it, so that jobs whose keepers died are cleaned up by the next process that
// uses the pool.
//
// The keeper of the first waiting job looks after the pool for all waiting jobs: it watches every keeper and, on the
// live machine, which processes use the devices without a lease. The others watch it and the pool's changes. So when a
// job ends, every keeper that may start its job then is woken, and a hundred waiting jobs cost no more than one. A
// keeper that is stopped, or gets no CPU time, is skipped: the next in line looks after the pool (pool::is_working()).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "pool/access.h"
#include "pool/lifeline.h"
#include "pool/machine_view.h"
#include "pool/pool.h"

namespace remuda::run {

/// As with Pool, none may be open when a process forks children that open one.
class FilePool final : public pool::Access {
 public:
  /// `machine` outlives it.
  static Result<std::unique_ptr<FilePool>> open(const std::string& folder, pool::MachineView& machine);

  const std::string& folder() const override { return folder_; }
  const std::string& log_folder() const override { return folder_; }
  bool is_served() const override { return false; }
  bool may_have_daemons() const override { return true; }

  Result<pool::PoolState> read() override { return pool_.read(); }
  Result<pool::PoolState> read_own() override { return pool_.read(); }
  Result<pool::PoolState> read_around(int64_t) override { return pool_.read(); }
  Result<std::optional<pool::Job>> find(int64_t id) override { return pool_.find(id); }
  Result<std::vector<pool::Job>> ended(int at_most) override { return pool_.ended(at_most); }

  /// Reads the machine first where the last reading is old; where it cannot be read, no job is started. The keepers of
  /// started jobs are woken by SIGCHLD, those of other users by the pool's bell.
  Result<pool::Applied> apply(const pool::Operation& operation) override;
  bool may_try_again() const override { return pool_.may_try_again(); }
  Result<void> enter(int64_t job) override;
  Result<void> bring(int64_t job, const process::ProcessId& process) override;
  /// Leaves the jobs as they are where every keeper lives.
  Result<void> tidy() override;

  Result<int> become_keeper() override;
  Result<pool::PoolState> attend(int64_t job) override;
  Result<void> rest(int64_t job, const std::vector<int>& readable) override;
  Result<void> wait(int64_t job, const std::vector<process::ProcessId>& processes, double seconds,
                    const std::vector<int>& readable) override;

 private:
  using Transition = std::function<Result<void>(pool::PoolState&)>;

  FilePool(std::string folder, pool::Pool pool, pool::MachineView& machine)
      : folder_(std::move(folder)), pool_(std::move(pool)), machine_(machine) {}
  Result<void> change_and_start(const Transition& transition, const std::vector<int64_t>& with,
                                const std::function<Result<void>(const pool::PoolState&)>& accept);
  std::vector<process::ProcessId> start_jobs(pool::PoolState& state) const;
  Result<std::vector<std::string>> cgroups_to_enter(int64_t job);
  Result<std::vector<int64_t>> reap_once();
  Fd take_place();
  double look_s() const;
  double until_next_look_s();
  int count_before(const pool::PoolState& state, int64_t job) const;
  std::vector<process::ProcessId> keepers_to_watch(const pool::PoolState& state, int64_t job) const;

  std::string folder_;
  pool::Pool pool_;
  pool::MachineView& machine_;
  std::optional<pool::Lifeline> lifeline_;
  double race_until_s_ = 0;  ///< on the steady clock: the line of those who wait for a change does not move

  /// Of a keeper whose job waits.
  pool::PoolState attended_;  ///< as attend() has read it last
  bool maintains_pool_ = false, is_next_ = false;
  double begins_at_s_ = kNever_s;  ///< when the next job may begin, on the wall clock
  double looked_at_s_ = 0;         ///< when it was last read which processes use the devices, on the steady clock
};

}  // namespace remuda::run
