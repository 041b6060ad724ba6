// Reading a device: all that the library tells of one GPU, and of its partitions.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "device/device.h"
#include "probe/nvml/gpm.h"
#include "probe/nvml/lib.h"
#include "probe/nvml/map.h"
#include "probe/nvml/place.h"
#include "probe/nvml/xid.h"

namespace remuda::probe::nvml {

/// A GPU that could be opened, and what must be kept of it from one reading to the next.
struct OpenGpu {
  Handle handle = nullptr;
  XidWatch xid;
  std::map<unsigned, Gpm> counters;  ///< by instance, kWholeGpu for the GPU itself
};

/// What a reading needs besides the GPU. `now_s`: monotonic.
struct Context {
  const Lib& lib;
  const KernelFiles& files;
  double now_s = 0;
};

/// The GPU; id and index are left to the caller. Processes lack user, command and start.
Device read_gpu(const Context& context, OpenGpu& gpu);

/// The GPU's partitions, none when it is whole. `parent` is what read_gpu() gave, with its id. Of what belongs to the
/// whole GPU they repeat what placing needs (model, architecture, cores, NUMA node) and nothing else.
std::vector<Device> read_partitions(const Context& context, OpenGpu& gpu, const Device& parent);

/// The compute capability of the GPU.
Reading<Capability> read_capability(const Lib& lib, Handle handle);

/// Memory: total, in use, reserved.
void read_memory(const Lib& lib, Handle handle, Device& device);

/// Cores and NUMA node, as far as they are not known, from what the kernel says of the device's PCI address.
void fill_place(const KernelFiles& files, Device& device);

}  // namespace remuda::probe::nvml
