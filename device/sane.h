// What no device can say of itself is taken for no reading: sensors and drivers answer with nonsense now and then, and
// each source has its own. Pure.
#pragma once

#include "device/inventory.h"

namespace remuda {

/// Makes readings missing, with the reason, that
///   cannot be: a power of 3700000 W, a share of 250 %, more memory in use than there is;
///   are lost where the device answers others: one sensor's error is not a lost card.
void make_sane(Device& device);
/// All devices, and their samples.
void make_sane(Inventory& inventory);

}  // namespace remuda
