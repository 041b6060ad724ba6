// Reading a device: all that the library reports about one GPU and its partitions.
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

/// A GPU that could be opened, and its state from one reading to the next.
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

/// Reads the GPU; the caller sets id and index. Processes lack user, command and start.
Device read_gpu(const Context& context, OpenGpu& gpu);

/// The GPU's partitions, none when it is whole. `parent` is the result of read_gpu(), with its id. From the whole GPU
/// they repeat only what placing needs (model, architecture, cores, NUMA node).
std::vector<Device> read_partitions(const Context& context, OpenGpu& gpu, const Device& parent);

/// The sizes of partitions that the GPU, which is cut, can have. `gpu` is the result of read_gpu() so far.
Reading<std::vector<PartitionOffer>> read_offers(const Lib& lib, Handle handle, const Device& gpu);

/// The compute capability of the GPU.
Reading<Capability> read_capability(const Lib& lib, Handle handle);

/// Memory: total, in use, reserved.
void read_memory(const Lib& lib, Handle handle, Device& device);

/// Fills cores and NUMA node, where they are not known, from the kernel's files for the device's PCI address.
void fill_place(const KernelFiles& files, Device& device);

}  // namespace remuda::probe::nvml
