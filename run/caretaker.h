// Caretaker: a pool together with the state of its machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pool/access.h"
#include "pool/machine_view.h"

namespace remuda::run {

/// One thread. As with Pool, none may be open when a process forks children that open one.
class Caretaker {
 public:
  /// A pool whose file this process opens (run/file_pool.h). `read` reads the machine; it is called once here, by
  /// read_machine(), and before each decision for which the last reading is too old. `live`: the machine is this one,
  /// so that jobs of its other pools count.
  static Result<Caretaker> open(const std::string& folder, pool::ReadMachine read, bool live);

  Caretaker(std::unique_ptr<pool::MachineView> machine, std::unique_ptr<pool::Access> access)
      : machine_(std::move(machine)), pool_(std::move(access)) {}

  Result<void> read_machine() { return machine_->read(); }
  Result<void> read_machine_if_old() { return machine_->read_if_old(); }
  /// The last reading. References into it are invalid after the next one.
  const Inventory& inventory() const { return machine_->inventory(); }
  std::vector<place::Held> held_without_lease(const pool::PoolState& state) const {
    return machine_->held_without_lease(state);
  }

  /// The policy of the pool, for people who ask why (pool/machine_view.h).
  const Result<pool::Policy>& policy() const { return machine_->policy(); }

  pool::Access& pool() { return *pool_; }
  const std::string& folder() const { return pool_->folder(); }
  Result<pool::Applied> apply(const pool::Operation& operation) { return pool_->apply(operation); }

  /// Ends the jobs whose keepers are gone, kills the processes they left, and starts the jobs whose turn it is then.
  /// Stops this user's sharing daemons that no job uses any more.
  Result<void> tidy();

 private:
  std::unique_ptr<pool::MachineView> machine_;
  std::unique_ptr<pool::Access> pool_;
};

/// Opens a pool: each process that uses one does so itself, after it was forked.
using OpenPool = std::function<Result<Caretaker>()>;

}  // namespace remuda::run
