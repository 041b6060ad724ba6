// Visibility: the environment that makes a job see the devices it was granted, and no others.
//
// Each maker's runtime has a variable of its own that names the devices a process sees, in the order in which it
// numbers them. Devices are named by UUID, as numbers depend on the order that a runtime chooses. These variables do
// not enforce anything: a job that changes them sees other devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "process/spawn.h"

namespace remuda::confine {

struct Visibility {
  process::Environment set;
  std::vector<std::string> unset;  ///< variables that would filter a second time, by number, what was filtered by UUID
};

/// Pure. For `granted`: ids of devices of the inventory; others are ignored. The variable of a maker none of whose
/// devices was granted is empty, so that its runtime finds none. Devices without a UUID (old recordings) are named by
/// index.
Visibility visibility(const Inventory& inventory, const std::vector<std::string>& granted);

/// libtorch's type of this device, which a process that sees only it finds under number 0: "cpu"; "cuda" for NVIDIA's,
/// and for AMD's too, as ROCm's libtorch calls them so; "xpu" for Intel's. Empty where libtorch itself has no name for
/// it. Pure.
std::string torch_device(const Device& device);

/// The variable, as NAME=VALUE, and the value, by which the caller of remuda asks for certain devices; nothing where
/// none is set. A job is not given what such a variable names.
struct VisibleToCaller {
  std::string entry;
  std::string devices;  ///< empty: none, as for "-1" and Slurm's "NoDevFiles"
};
std::optional<VisibleToCaller> visible_to_caller();

}  // namespace remuda::confine
