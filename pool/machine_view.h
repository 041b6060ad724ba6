// MachineView: the state of a pool's machine: the last reading of it, and what is in use there without a lease.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/inventory.h"
#include "place/held.h"
#include "pool/claim.h"
#include "pool/state.h"
#include "pool/usage.h"

namespace remuda::pool {

/// Reads the machine.
using ReadMachine = std::function<Result<Inventory>()>;
/// Reads what the administrator has decided.
using ReadPolicy = std::function<Result<Policy>()>;

/// Asks the other managers of this machine for the devices that they give out.
using ReadAllocations = std::function<std::vector<Allocation>(const Inventory&)>;

/// One thread.
class MachineView {
 public:
  /// Reads the machine and the policy once. `live`: the machine is this one, so that jobs of its other pools count.
  /// Without `read_allocations`, no other manager is asked.
  static Result<MachineView> open(std::string folder, ReadMachine read, ReadPolicy read_policy, bool live,
                                  ReadAllocations read_allocations = nullptr,
                                  OthersClaims others = OthersClaims::count);

  /// Reads the machine and the policy. Only this shows which devices other processes and jobs of other pools use now.
  Result<void> read();
  /// The same, unless it was read less than 2 seconds ago.
  Result<void> read_if_old();
  /// Reads the policy alone: no device is asked for that.
  void read_policy();
  /// The last reading. References into it are invalid after the next one.
  const Inventory& inventory() const { return inventory_; }
  bool is_live() const { return live_; }
  /// As it was at the last reading. An error where its file is wrong: then nothing enters the queue, and no job starts.
  const Result<Policy>& policy() const { return policy_; }
  /// Takes the place of an older view, whose policy may be the last that was no error.
  void follow(const MachineView& older);
  /// The last that was no error, for what ends and is charged also where the file is wrong.
  const Policy& last_policy() const { return last_policy_; }

  /// What other managers give out.
  const std::vector<Allocation>& allocations() const { return allocations_; }

  /// Devices that jobs of other pools have (pool/claim.h), those that other managers give out, and those in use by
  /// processes that hold no lease. Where a device has a lease, its processes are taken to be the lease's.
  std::vector<place::Held> held_without_lease(const PoolState& state) const;

 private:
  MachineView(std::string folder, ReadMachine read, ReadPolicy read_policy, bool live);
  std::string folder_;
  ReadMachine read_;
  ReadPolicy read_policy_;
  bool live_;
  OthersClaims others_ = OthersClaims::count;
  Inventory inventory_;
  std::vector<place::Held> claimed_;  ///< by other pools
  ReadAllocations read_allocations_;
  std::vector<Allocation> allocations_;
  Result<Policy> policy_;
  Policy last_policy_;
  double read_at_s_ = 0;  ///< on the steady clock
};

}  // namespace remuda::pool
