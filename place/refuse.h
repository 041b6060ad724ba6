// Explaining a refusal. Internal to place.
#pragma once

#include <span>

#include "place/answer.h"
#include "place/held.h"
#include "place/search.h"

namespace remuda::place {

/// `search` found no set among the devices that are free.
Refusal refuse(const Inventory& inventory, const Request& request, const std::vector<Candidate>& candidates,
               const Search& search, std::span<const Held> held);

}  // namespace remuda::place
