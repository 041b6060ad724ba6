// Which devices and network cards stand together, and how near: what the PCIe tree is inferred from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::topology {

/// A GPU, CPU device or network card of the inventory; partitions are none of them.
struct Item {
  const Device* device = nullptr;  ///< one of the two
  const Nic* nic = nullptr;
};

/// A NUMA node, or items that stand together without anyone saying in which.
struct Place {
  std::optional<int> numa_node;
  std::vector<int> cores;  ///< those nearest to its items, where known
  std::vector<int> items;  ///< positions in Locality::items, ascending
};

struct Locality {
  std::vector<Item> items;
  std::vector<std::vector<std::optional<Path>>> paths;  ///< between items, symmetric; nothing where not read
  /// NUMA nodes with items or cores by number, then those without a number. A lone item of which nothing is known
  /// stands in none.
  std::vector<Place> places;
};

/// An item's place is the NUMA node it names, else the node that has its cores, else that of any item nearer than SYS
/// or with the same cores.
Locality locate(const Inventory& inventory);

/// Joins what belongs together: each element begins alone.
class Groups {
 public:
  explicit Groups(size_t size);
  int root(int element) const;
  void join(int a, int b);

 private:
  std::vector<int> parents_;
};

}  // namespace remuda::topology
