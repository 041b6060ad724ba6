// AMD GPUs, from what the amdgpu driver shows in sysfs; no library is needed.
//
// The KFD topology (/sys/class/kfd/kfd/topology) tells which GPUs compute, how they are joined and their memory; the
// GPU's folder on the PCI bus tells use, power, heat, clocks and errors; /sys/class/kfd/kfd/proc tells who uses them.
// Several KFD nodes at one PCI address are partitions of one GPU: it and each of them become devices, and what is told
// of the GPU alone is missing of its partitions with that reason.
//
// Links: KFD link type 11 is xgmi, 2 is PCIe. The weight is the driver's: about 15 for each hop over xgmi, so weight/15
// tells a direct link from a path through another GPU; hops are not known. min_bandwidth is that of one link and
// max_bandwidth that of all, in MB/s, hence links = max / min. Where on the PCI tree a GPU hangs, its PCIe link and the
// cores near it are left to the probe of the PCI bus.
//
// librocm_smi64 and libamd_smi are not asked: beyond these files they offer power and clock counters that the driver
// packs into gpu_metrics, in layouts that change with the chip (throttle reasons, energy); those stay unread.
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
