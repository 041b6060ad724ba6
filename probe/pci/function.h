// A PCI function in sysfs: the part that GPUs and network cards have in common.
#pragma once

#include <optional>
#include <string>

#include "device/reading.h"
#include "probe/pci/path.h"

namespace remuda::probe::pci {

struct Function {
  std::string folder;   ///< its real path in sysfs
  std::string address;  ///< 0000:27:00.0
  Place place;
  Reading<int> numa_node;
};

/// The function whose folder `path` leads to. Nothing when that is not a function on a PCI bus, or is a virtual one
/// that belongs to another function of this machine.
std::optional<Function> read_function(const std::string& path);

/// A file with a number as the PCI core writes it: 0x10de.
std::optional<uint32_t> read_hex(const std::string& path);

}  // namespace remuda::probe::pci
