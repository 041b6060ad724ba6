// Explaining a choice. Internal to place.
#pragma once

#include "place/answer.h"
#include "place/search.h"

namespace remuda::place {

/// `best` has at least one set.
Placement explain(const Inventory& inventory, const Request& request, const std::vector<Candidate>& candidates,
                  const Search& search, const BestSets& best);

/// The devices that the request asked about and that cannot be taken now, with their reasons.
std::vector<Explanation::Rejected> rejected(const std::vector<Candidate>& candidates);

}  // namespace remuda::place
