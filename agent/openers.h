// Openers: processes that have a device's file open without right, from before they were kept from it or handed to
// them.
#pragma once

#include <string>
#include <vector>

#include "agent/bearer.h"
#include "device/inventory.h"

namespace remuda::agent {

/// Adds them to the processes that the inventory has of each device, so that a device which somebody has without a
/// lease is granted to nobody. Left out are those of root and in cgroups that are exempt (policy::Policy::exempt): they
/// look after devices. Of each user, by whatever ids (bearer.h), a bounded number of descriptors is looked at, those of
/// processes that have few first: what a user has open beyond that is not seen. `sysfs` and what follows: for tests.
void add_openers(Inventory& inventory, const std::vector<std::string>& exempt, const std::string& sysfs = "/sys",
                 const std::string& proc = "/proc", Bearers bearers = Bearers());

}  // namespace remuda::agent
