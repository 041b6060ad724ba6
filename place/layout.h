// Layout: the links of a machine, as placement needs them; made once and used for many requests.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "device/inventory.h"
#include "place/request.h"
#include "topology/bottleneck.h"
#include "topology/matrix.h"

namespace remuda::place {

/// Immutable after prepare(); then any thread may place with it.
class Layout {
 public:
  /// `inventory` must outlive this, and keep its devices and links; their status may change.
  explicit Layout(const Inventory& inventory);

  /// Computes the best rings by such links of all sets of GPUs in advance, for a process that places often; does
  /// nothing the second time. Without it, each request for two or more devices computes those it needs, which for 16
  /// GPUs takes longer than the choice itself.
  void prepare(LinkNeed need);
  /// By links of every kind.
  void prepare();

  const Inventory& inventory() const { return *inventory_; }
  /// The whole GPUs, in inventory order; none where there are more than Request::kMostDevices.
  const topology::Matrix& matrix() const { return matrix_; }
  /// Rings over matrix().devices; null before prepare() and for more than RingTable::kMaxDevices.
  const topology::RingTable* rings(LinkNeed need) const;

 private:
  const Inventory* inventory_;
  topology::Matrix matrix_;
  std::array<std::optional<topology::RingTable>, Words<LinkNeed>::table.size()> rings_;
};

/// The speed of each pair of the matrix whose link meets `need`; 0 for the others.
topology::Speeds speeds_for(const Inventory& inventory, const topology::Matrix& matrix, LinkNeed need);

/// The number of pairs of these devices for which it is not recorded whether their link meets `need`.
size_t unknown_pairs(const Inventory& inventory, const std::vector<const Device*>& devices, LinkNeed need);

}  // namespace remuda::place
