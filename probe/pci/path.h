// Where a device is in the PCI tree, and how near two of them are. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/inventory.h"

namespace remuda::probe::pci {

/// Bridges of the card itself are not among `bridges`: the caller that makes a Place removes them.
struct Place {
  std::string root;                  ///< host bridge: pci0000:20
  std::vector<std::string> bridges;  ///< from the host bridge down, without the device itself
  std::optional<int> numa_node;
};

/// From the device's real path in sysfs: /sys/devices/pci0000:20/0000:20:01.1/0000:21:00.0. Nothing when the path has
/// no host bridge.
std::optional<Place> place_of(std::string_view real_path);

/// By the rule of probe/pci/probe.h.
Path path_between(const Place& a, const Place& b, bool one_numa_node);

}  // namespace remuda::probe::pci
