// Place: a device's position in the machine, from sysfs and procfs. For what the library does not report.
#pragma once

#include <string>
#include <vector>

#include "device/reading.h"

namespace remuda::probe::nvml {

/// Where the kernel's files are; tests have their own.
struct KernelFiles {
  std::string proc = "/proc", sys = "/sys";
};

/// Logical CPUs near a PCI device.
Reading<std::vector<int>> near_cores(const KernelFiles& files, const std::string& pci);
Reading<int> numa_node(const KernelFiles& files, const std::string& pci);
/// Whether an NVSwitch is at the address: a bridge of class 0x0680 made by NVIDIA. Missing when the kernel knows no
/// device there.
Reading<bool> is_fabric_switch(const KernelFiles& files, const std::string& pci);

/// Version of the loaded kernel module.
Reading<std::string> module_version(const KernelFiles& files);
/// The PCI addresses the kernel module drives, ascending, whether or not they answer.
std::vector<std::string> driven_addresses(const KernelFiles& files);

}  // namespace remuda::probe::nvml
