// Device nodes: the files of /dev through which a device is used, by their numbers in the kernel.
//
// Nodes that several devices share (/dev/nvidiactl, /dev/nvidia-uvm, /dev/kfd) are not among them: a job that was
// granted one device needs them.
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
  std::vector<DeviceNode> nodes;  ///< ascending, each once
  /// Labels of devices that have a driver, or may have, but whose nodes are not known. All nodes that may be theirs are
  /// withheld, unless those of a granted device are not known either.
  std::vector<std::string> unknown;
};

/// The nodes of all GPUs and partitions except the granted ones. Does not withhold a node that a granted device needs,
/// or that of the GPU to which a granted partition belongs. Reads the folders of PCI devices below `sysfs`.
Withheld withheld_nodes(const Inventory& inventory, const std::vector<std::string>& granted,
                        const std::string& sysfs = "/sys");

/// The nodes of a GPU or partition; several may have one.
struct DeviceNodes {
  std::string device;                ///< its id
  std::vector<DeviceNode> nodes;     ///< ascending, each once
  bool are_all = true;               ///< false where it has a driver, or may have, but not all of its nodes are known
  std::vector<DeviceNode> possible;  ///< then, all that may be its
};

/// Those of all GPUs and partitions.
std::vector<DeviceNodes> all_nodes(const Inventory& inventory, const std::string& sysfs = "/sys");

}  // namespace remuda::confine
