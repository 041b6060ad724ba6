// The PCI bus as the kernel shows it: GPUs with and without a driver, network cards, NUMA nodes, and how near they are.
//
// A GPU is a display controller (class 0300, 0302, 0380) or processing accelerator (1200) of NVIDIA, AMD or Intel.
// Not GPUs: the display chips of a server's management controller, and virtual functions that this host provides.
// For a GPU driven by its vendor's compute driver (nvidia, amdgpu) this probe reads only what PCI shows: the vendor's
// probe reads the rest. For any other GPU, each reading that only a driver could give is missing, with the driver that
// is or is not bound as the reason.
//
// How near two devices are (Path), from the chain of bridges between the host bridge (pci0000:20) and each of them,
// where the bridges of a card that carries its own switch (AMD's) count as part of the card:
//   PIX   below their last common bridge each has at most one bridge: they share one switch, or one card
//   PXB   they have a bridge in common, with more switches between them
//   PHB   only the host bridge is common to both
//   NODE  two host bridges of one NUMA node, or of a machine with one node only
//   SYS   two NUMA nodes
//   PCIE  two host bridges, and the NUMA node of one of them is not known
//
// PCIe generation and width: for a card with a switch of its own, those of the link between card and slot. "max" is
// what card and slot support together; the current values are those they have negotiated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probe/probe.h"

namespace remuda::probe {

struct PciOptions {
  std::string sysfs = "/sys";
  /// Lists of device names in the format of pci.ids; the first that exists is used, to name GPUs.
  std::vector<std::string> names{"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"};
};

std::unique_ptr<Probe> make_pci_probe(PciOptions options = {});

}  // namespace remuda::probe
