// Machines for the tests of this folder, written as people write them: as a matrix of words.
#pragma once

#include <string>

#include "device/inventory.h"

namespace remuda::topology {

/// A row per device: its words, then what is to be known of it after a "|": numa=0 cores=0-7 model=... memory=80 (GiB)
/// gen=4 width=16 chip=9.0. A row whose first word is "nic" is a network card's; its other words join it to the
/// devices:
///   X NV2 SYS | numa=0
///   NV2 X SYS | numa=0
///   SYS SYS X | numa=1
///   nic PIX PHB SYS | name=mlx5_0
/// NVn becomes n links of NVLink, XGn of xGMI, "?" no link. Models may not contain spaces; "_" stands for one.
Inventory test_machine(const std::string& rows);

/// An 8-GPU hybrid cube mesh with four network cards, eight GPUs on a switch with one
/// network card each, and four GPUs in two pairs.
Inventory cube_mesh();
Inventory switched();
Inventory pairs();
/// Two CPU devices of one NUMA node each.
Inventory two_sockets();

/// Adds a measurement of the pair.
void measure(Inventory& inventory, const std::string& a, const std::string& b, double gbps);

}  // namespace remuda::topology
