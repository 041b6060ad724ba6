// Candidate: a device, and whether it can be taken for a request now, later or never. Internal to place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "place/held.h"
#include "place/request.h"

namespace remuda::place {

struct Candidate {
  enum class State {
    free,       ///< it can be taken now
    held,       ///< too much of it is held
    full,       ///< its memory is in use
    unwell,     ///< it has a fault, and cannot be used until it is repaired
    unfit,      ///< it is not what is asked for
    not_asked,  ///< of a kind that the request does not include, or not among the devices it names
  };
  const Device* device = nullptr;
  State state = State::free;
  std::string reason;  ///< unless free: half a sentence about the device
  /// For an unfit one: the readings that are missing to decide whether it fits ("memory"); empty where it is certain.
  std::vector<std::string> unknown;
  double room = 1;        ///< the part of the device that is not held; for a partition, at most its part of its GPU
  bool is_whole = false;  ///< no part of it is held, it has no fault, and it is not a partition

  bool can_come() const { return state < State::unfit; }  ///< it can be taken now or later
};

/// One for each device of the inventory, which must outlive them; in its order.
Result<std::vector<Candidate>> find_candidates(const Inventory& inventory, const Request& request,
                                               std::span<const Held> held);

}  // namespace remuda::place
