// Store: what `remuda bench links` measured on this machine, kept in one file beside the user's other state.
//
// $XDG_STATE_HOME/remuda/measured.json, or ~/.local/state/remuda/measured.json, or for root without a HOME
// /var/lib/remuda/measured.json. Results are kept by the host's name, the device's id, and of CPU devices the cores: a
// cpu:0 of other cores is another device. The file is always whole. One that holds anything else is never overwritten.
#pragma once

#include <string>

#include "base/result.h"
#include "device/inventory.h"

namespace remuda::measure {

/// Adds to the inventory what is stored of its host, for devices that are there; in place of what it holds of the same
/// device or pair. Nothing stored is no error; a file that cannot be understood is one, and says which it is.
Result<void> load_measured(Inventory& inventory);

/// Whether store_measured() will be able to: makes the folder (for the user alone) and reads what is there.
Result<void> check_measured_store();

/// Stores measured_devices and measured_links of the inventory, whose devices are there. They take the place of what is
/// stored of the same device or pair; all else stays. Returns the file's path.
Result<std::string> store_measured(const Inventory& inventory);

}  // namespace remuda::measure
