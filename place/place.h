// place(): the best devices for a request, or why there are none. Pure: the same arguments give the same answer.
//
// Among the sets that satisfy the request, the first of these that differs decides:
//   1. fewer CPU devices
//   2. the best ring: that whose slowest link is fastest (topology/bottleneck.h)
//   3. fewer models, then fewer classes of computing speed (they differ by 5 % and more)
//   4. fewer NUMA nodes, then fewer PCIe roots
//   5. for requests for a share: fewer devices of which no part was held, then the tightest fit
//   6. the devices that stay free are worth more (place/remainder.h): linked pairs stay whole, one-device jobs take
//      the rest
//   7. the order of the inventory
// Guaranteed where at most 16 devices may make a set together: every set is considered, so no set that satisfies the
// request has fewer CPU devices, or as many and a faster ring; and the order of the devices decides only which of equal
// sets is taken, never how good it is. For more devices, see Explanation::exhaustive.
//
// Example:
//   const Layout layout(inventory);
//   const Request two_linked{.count = 2, .link = LinkNeed::nvlink};
//   const Answer answer = place(layout, two_linked, held_by_processes(inventory)).value();
//   if (const auto* placement = std::get_if<Placement>(&answer))
//     devices = placement->devices;
//   else
//     reason = std::get<Refusal>(answer).sentence;
#pragma once

#include <span>

#include "place/answer.h"
#include "place/held.h"
#include "place/layout.h"
#include "place/request.h"

namespace remuda::place {

/// A usage error for a request that makes no sense or names a device that does not exist.
Result<Answer> place(const Layout& layout, const Request& request, std::span<const Held> held);

/// Whether place() would give a placement. Much cheaper: it looks for any set, not for the best, and explains nothing.
Result<bool> fits(const Layout& layout, const Request& request, std::span<const Held> held);

}  // namespace remuda::place
