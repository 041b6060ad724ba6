// Fit: whether one device can be taken for a request now, later or never. Internal to place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "place/held.h"
#include "place/request.h"

namespace remuda::place {

struct Fit {
  enum class State {
    free,       ///< it can be taken now
    taken,      ///< somebody holds too much of it
    full,       ///< its memory is in use
    unwell,     ///< it is out until it is mended
    unfit,      ///< it is not what is asked for
    not_asked,  ///< of a kind the request does not mean, or not among the devices it names
  };
  State state = State::free;
  std::string reason;  ///< unless free: half a sentence about the device
  double room = 1;     ///< the part of the device that nobody holds; of a partition, at most its part of its GPU
  bool whole = false;  ///< nobody holds any of it, it is well, and it is no partition

  bool can_come() const { return state < State::unfit; }  ///< now or later
};

/// One for each device of the inventory.
Result<std::vector<Fit>> fit_all(const Inventory& inventory, const Request& request, std::span<const Held> held);

/// Whether the request means partitions too: it asks for part of a device, or its condition asks about partitions.
bool means_partitions(const Request& request);

}  // namespace remuda::place
