// The NVML probe: NVIDIA's GPUs, their links and processes, by libnvidia-ml.so.1.
//
// The library runs in a guarded child, which keeps it open from one find() to the next: a call that hangs or crashes
// affects only that process. A GPU on which that happens is reported as lost and not read again for retry_s; the others
// are read as usual. This process never loads the library.
//
// Not for several threads at once. Make the probe, and call it the first time, before the process has threads, from a
// thread that outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "probe/probe.h"

namespace remuda::probe {

struct NvmlOptions {
  std::string library = "libnvidia-ml.so.1";
  std::string proc = "/proc", sys = "/sys";  ///< where the kernel's files are
  double step_s = 0;     ///< seconds a GPU may take for one step; 0 = REMUDA_PROBE_TIMEOUT, or else 5
  double start_s = 0;    ///< the same for the library's start and the first access to a GPU; 0 = 4 times step_s
  double retry_s = 300;  ///< seconds after which a GPU that hung or crashed is tried again
};

std::unique_ptr<Probe> make_nvml_probe(NvmlOptions options = {});

/// Makes a partition of a GPU that is cut into such, both by their names in the inventory, and returns its UUID. This
/// and remove_nvml_partition() load the library into this process and may hang with the driver: for a process of their
/// own. Nothing else here changes a GPU. The GPU's mode stays what it is.
Result<std::string> make_nvml_partition(const std::string& gpu_uuid, const std::string& profile,
                                        const std::string& library = NvmlOptions().library);
/// An error where a process uses it.
Result<void> remove_nvml_partition(const std::string& uuid, const std::string& library = NvmlOptions().library);

/// The instances that the GPU is cut into: by their numbers, the UUIDs of the partitions; empty where one is no device,
/// as it has no compute instance: a process that made a partition or took one away was killed.
Result<std::map<unsigned, std::string>> nvml_instances(const std::string& gpu_uuid,
                                                       const std::string& library = NvmlOptions().library);
/// Takes one away that is no device.
Result<void> remove_empty_nvml_instance(const std::string& gpu_uuid, unsigned number,
                                        const std::string& library = NvmlOptions().library);

}  // namespace remuda::probe
