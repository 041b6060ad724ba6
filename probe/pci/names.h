// Names of PCI devices, from the list that pciutils and hwdata install (pci.ids).
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

namespace remuda::probe::pci {

/// The name of a device in a stream of that format: "RTX A6000" for "GA102GL [RTX A6000]", or the whole name where it
/// has no brackets; nothing when the list does not know it. Reads no further than the vendor's part; a line of 1 KiB or
/// more ends the list.
std::optional<std::string> find_name(std::istream& list, uint16_t vendor, uint16_t device);

}  // namespace remuda::probe::pci
