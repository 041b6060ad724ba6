// Collects the facts about this machine that the checks need, except software (software.h). Reads only /proc, /sys and
// /dev, which answer at once.
#pragma once

#include <string>

#include "device/inventory.h"
#include "doctor/facts.h"

namespace remuda::doctor {

/// The facts, about the GPUs and processes of `inventory`. `root` is put before each path: empty for the live machine;
/// limits, cores and environment are always those of this process.
HostFacts gather_facts(const Inventory& inventory, const std::string& root = "");

}  // namespace remuda::doctor
