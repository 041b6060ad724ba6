// The PCIe switches above a device, and whether they redirect its traffic with peers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/reading.h"
#include "doctor/facts.h"

namespace remuda::doctor {

/// Whether a bridge's Access Control Services send traffic between two devices below it up to the root complex.
/// `config`: its configuration space. The extended capability list starts at 0x100; ACS is capability 0x000d, its
/// control register at +6, with the bits request redirect (0x4), completion redirect (0x8) and egress control (0x20):
/// PCI Express Base Specification, 7.7.11. Missing when the space was cut: the kernel shows 64 bytes to users other
/// than root.
Reading<bool> acs_redirects(std::span<const unsigned char> config);

/// The ports of PCIe switches in a device's path in sysfs, nearest to the root first:
/// /sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0/0000:23:00.0 -> {0000:21:00.0, 0000:22:00.0}.
/// The root port is left out: traffic from one root port to another passes the root complex in any case.
std::vector<std::string> switches_above(std::string_view path);

/// The GPU at that address, as the kernel's files under `root` (empty: the live ones) show it.
GpuSlot read_slot(const std::string& root, const std::string& pci);

}  // namespace remuda::doctor
