// AMD GPUs, from what the amdgpu driver shows in sysfs; no library is needed.
//
// The KFD topology (/sys/class/kfd/kfd/topology) lists the GPUs that compute, their links and their memory; the GPU's
// folder on the PCI bus has utilization, power, heat, clocks and errors; /sys/class/kfd/kfd/proc has the processes that
// use them. Several KFD nodes at one PCI address are partitions of one GPU: the GPU and each partition become devices,
// and a reading that exists only for the whole GPU is missing for its partitions, with that reason.
//
// Links: KFD link type 11 is xgmi, 2 is PCIe. The weight is the driver's: about 15 for each hop over xgmi, so weight/15
// distinguishes a direct link from a path through another GPU; the number of hops is not known. min_bandwidth is that
// of one link and max_bandwidth that of all, in MB/s, so links = max / min. A GPU's place in the PCI tree, its PCIe
// link and the cores near it are left to the probe of the PCI bus.
//
// librocm_smi64 and libamd_smi are not used: beyond these files they offer power and clock counters that the driver
// packs into gpu_metrics, in layouts that change with the chip (throttle reasons, energy); those are not read.
#pragma once

#include <memory>
#include <string>

#include "probe/probe.h"

namespace remuda::probe {

struct AmdOptions {
  std::string sysfs = "/sys";
  std::string proc = "/proc";
};

std::unique_ptr<Probe> make_amd_probe(AmdOptions options = {});

}  // namespace remuda::probe
