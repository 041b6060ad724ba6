// The matrix of devices: what joins each pair, and how fast.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "topology/bandwidth.h"
#include "topology/bottleneck.h"

namespace remuda::topology {

/// The devices people look at together: the whole GPUs, or, where there is none, the CPU devices. In inventory order.
std::vector<const Device*> linked_devices(const Inventory& inventory);

struct Matrix {
  struct Pair {
    std::string label;               ///< "X" on the diagonal
    std::optional<PairSpeed> speed;  ///< nothing on the diagonal and where it is not known
  };
  std::vector<const Device*> devices;    ///< of the inventory, which must outlive this
  std::vector<std::vector<Pair>> pairs;  ///< symmetric

  /// For rings and trees: 0 where nothing is known.
  Speeds speeds() const;
};

/// `devices` may be of any kind, each at most once. Takes time in proportion to the pairs and the recorded links.
Matrix make_matrix(const Inventory& inventory, std::vector<const Device*> devices);
Matrix make_matrix(const Inventory& inventory);

}  // namespace remuda::topology
