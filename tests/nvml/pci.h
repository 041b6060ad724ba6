// PCI addresses as the interface writes them.
#pragma once

#include <string>

#include "tests/nvml/abi.h"

namespace remuda::tests::nvml {

/// `pci` as in 0000:27:00.0; every field of `info`.
void fill_pci(const std::string& pci, PciInfo& info);

}  // namespace remuda::tests::nvml
