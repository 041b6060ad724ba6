// Explaining a choice, and a refusal. Internal to place.
#pragma once

#include "place/choice.h"
#include "place/place.h"

namespace remuda::place {

/// `choice` has at least one option.
Placement explain(const Layout& layout, const Request& request, const std::vector<Fit>& fits, const Chooser& chooser,
                  const Choice& choice);

/// `chooser` found no set among the devices that are free.
Refusal refuse(const Layout& layout, const Request& request, const std::vector<Fit>& fits, const Chooser& chooser,
               std::span<const Held> held);

/// The devices that the request asked about and that cannot be taken now, with their reasons.
std::vector<Explanation::Rejected> rejected(const Layout& layout, const std::vector<Fit>& fits);

}  // namespace remuda::place
