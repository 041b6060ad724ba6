// Claim: a device that is leased in one pool counts as held in all others of the machine.
//
// A machine has more than one pool where its users do not share one. So the keeper of a job holds, for each device that
// the job was granted, an abstract Unix socket whose name says the pool and the device. It exists until the keeper and
// the last process of its job are gone, however they ended. Jobs of one pool, which may have parts of one device, do
// not stand in each other's way: the pool's leases decide between them.
//
// Abstract sockets are seen within one network namespace: of the claims in a container that has one of its own, other
// pools know nothing, and it knows nothing of theirs.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "device/inventory.h"
#include "place/held.h"

namespace remuda::pool {

/// Why devices could not be claimed.
struct NotClaimed {
  std::string device;  ///< id of one that a job of another pool has; empty: the system does not permit claims
  std::string why;     ///< who has it, "alice (a job of another pool, process 4711)"; or what the system says
};

/// The claims of one job.
class Claim {
 public:
  /// Claims the devices of these ids, all or none, for a job in the pool of `folder`. CPU devices are not claimed: the
  /// system divides cores among all processes. Where two pools try at the same time, one of them gets the devices.
  static tl::expected<Claim, NotClaimed> take(const std::string& folder, const std::vector<std::string>& devices);

  /// For the processes of the job, which inherit them. Numbers above those that shell scripts use.
  std::vector<int> fds() const;

 private:
  std::vector<Fd> sockets_;
};

/// The devices of the inventory that jobs of other pools have, whole: which part, only their pool knows. Empty where
/// the system does not show claims.
std::vector<place::Held> claimed_by_others(const std::string& folder, const Inventory& inventory);

}  // namespace remuda::pool
