// Memory of the host for what is copied to a device again and again, such as batches: registered with the driver, so
// that copies from it need no detour and run beside the program, and kept to be used again, since registering takes as
// long as copying does.
#pragma once

#include "data/loader.h"
#include "train/device/device_ops.h"

namespace remuda::train {

/// Memory that `ops` can copy from without a detour; plain memory for a CPU, and where the driver refuses. Memory that
/// nobody holds any more is given again: whoever gives it back has waited for the copies from it. Any thread; what it
/// gives may outlive it.
data::BatchMemory pinned_memory(const DeviceOps& ops);

}  // namespace remuda::train
