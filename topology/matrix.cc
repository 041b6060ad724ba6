#include "topology/matrix.h"

#include <algorithm>
#include <unordered_map>

#include "topology/label.h"

namespace remuda::topology {
namespace {

using Positions = std::unordered_map<std::string_view, size_t>;

template <typename T>
using Grid = std::vector<std::vector<const T*>>;

/// The recorded links by the positions of their ends, in both orders.
template <typename T>
Grid<T> by_pair(const std::vector<T>& links, const Positions& positions) {
  Grid<T> grid(positions.size(), std::vector<const T*>(positions.size(), nullptr));
  for (const T& link : links) {
    const auto a = positions.find(link.a), b = positions.find(link.b);
    if (a == positions.end() || b == positions.end()) continue;
    grid[a->second][b->second] = grid[b->second][a->second] = &link;
  }
  return grid;
}

}  // namespace

std::vector<const Device*> linked_devices(const Inventory& inventory) {
  std::vector<const Device*> gpus, cpus;
  for (const Device& device : inventory.devices) {
    if (device.kind == DeviceKind::gpu) gpus.push_back(&device);
    if (device.kind == DeviceKind::cpu) cpus.push_back(&device);
  }
  return gpus.empty() ? cpus : gpus;
}

Speeds Matrix::speeds() const {
  Speeds speeds;
  for (const auto& row : pairs) {
    speeds.emplace_back();
    for (const Pair& pair : row) speeds.back().push_back(pair.speed ? pair.speed->gbps : 0);
  }
  return speeds;
}

Matrix make_matrix(const Inventory& inventory, std::vector<const Device*> devices) {
  Positions positions;
  for (size_t i = 0; i < devices.size(); ++i) positions.emplace(devices[i]->id, i);
  const auto links = by_pair(inventory.links, positions);
  const auto measured = by_pair(inventory.measured_links, positions);
  Matrix matrix{devices, {devices.size(), std::vector<Matrix::Pair>(devices.size())}};
  for (size_t i = 0; i < devices.size(); ++i) {
    matrix.pairs[i][i].label = "X";
    for (size_t j = i + 1; j < devices.size(); ++j)
      matrix.pairs[i][j] = matrix.pairs[j][i] = {pair_label(*devices[i], *devices[j], links[i][j]),
                                                 pair_speed(*devices[i], *devices[j], links[i][j], measured[i][j])};
  }
  return matrix;
}

Matrix make_matrix(const Inventory& inventory) { return make_matrix(inventory, linked_devices(inventory)); }

}  // namespace remuda::topology
