// Gathering what the checks need to know of this machine, software apart (software.h). Reads /proc, /sys and /dev only,
// which answer at once.
#pragma once

#include <string>

#include "device/inventory.h"
#include "doctor/facts.h"

namespace remuda::doctor {

/// The facts, about the GPUs and processes of `inventory`. `root` stands before each path: empty for the live machine;
/// limits, cores and environment are always those of this process.
HostFacts gather_facts(const Inventory& inventory, const std::string& root = "");

}  // namespace remuda::doctor
