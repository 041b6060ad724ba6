// Network cards on the PCI bus.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"
#include "probe/pci/path.h"

namespace remuda::probe::pci {

struct NicAt {
  Nic nic;
  Place place;
};

/// One per PCI function, by the name of its RDMA device (mlx5_0) where it has one, else of its first network interface
/// (eth0). Virtual interfaces and virtual functions are left out.
std::vector<NicAt> find_nics(const std::string& sysfs);

}  // namespace remuda::probe::pci
