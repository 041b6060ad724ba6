// Claim: a device that is leased in one pool counts as held in all others of the machine.
//
// A machine has more than one pool where its users do not share one. So the keeper of a job holds, for each device that
// the job was granted, an abstract Unix socket whose name says the pool and the device. It exists until the keeper and
// the last process of its job are gone, however they ended. Claims of one pool do not exclude each other, as its jobs
// may have parts of one device: the pool's leases decide between them.
//
// Abstract sockets are visible within one network namespace: pools outside a container that has its own namespace do
// not see the claims made in it, nor does it see theirs.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "device/inventory.h"
#include "place/held.h"

namespace remuda::pool {

/// Why devices could not be claimed.
struct NotClaimed {
  std::string device;  ///< id of a device that a job of another pool has; empty: the system does not permit claims
  std::string why;     ///< who has it, "alice (a job of another pool, process 4711)"; or the system's error
};

/// What claims of other pools mean to those who serve, or use, a pool. Any user can make them, so to an agent of root,
/// which no user is to keep from a device, they mean nothing: there only use counts, a process or an open file.
enum class OthersClaims { count, mean_nothing };

/// The claims of one job.
class Claim {
 public:
  /// Claims the devices of these ids, all or none, for a job in the pool of `folder`. CPU devices are not claimed: the
  /// system divides cores among all processes. Where two pools try at the same time, one of them gets the devices.
  static tl::expected<Claim, NotClaimed> take(const std::string& folder, const std::vector<std::string>& devices,
                                              OthersClaims others = OthersClaims::count);

  /// The sockets, for the processes of the job to inherit. Their numbers are above those that shell scripts use.
  std::vector<int> fds() const;

 private:
  std::vector<Fd> sockets_;
};

/// The devices of the inventory that jobs of other pools have, each counted as a whole device: only that pool knows
/// which part of it is leased. Empty where the system does not show claims.
std::vector<place::Held> claimed_by_others(const std::string& folder, const Inventory& inventory);

}  // namespace remuda::pool
