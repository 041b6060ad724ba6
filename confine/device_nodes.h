// Device nodes: the files of /dev through which a device is used, by the numbers the kernel knows them by.
//
// What several devices share (/dev/nvidiactl, /dev/nvidia-uvm, /dev/kfd) is not among them: a job that was
// granted one device needs it.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::confine {

/// A character device.
struct DeviceNode {
  unsigned major = 0, minor = 0;
  auto operator<=>(const DeviceNode&) const = default;
};

struct Withheld {
  std::vector<DeviceNode> nodes;     ///< ascending, each once
  std::vector<std::string> unknown;  ///< labels of devices that are in use by a driver, and do not tell their nodes
};

/// The nodes of all GPUs and partitions but the granted ones. A node that a granted device needs, or the GPU that a
/// granted partition is a part of, is not withheld. Reads the folders of PCI devices below `sysfs`.
Withheld withheld_nodes(const Inventory& inventory, const std::vector<std::string>& granted,
                        const std::string& sysfs = "/sys");

}  // namespace remuda::confine
