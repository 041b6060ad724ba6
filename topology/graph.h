// The machine as one graph: a tree of NUMA nodes, host bridges and PCIe switches over GPUs, network cards and CPU
// devices, and the direct links between GPUs across it.
//
// Sources report how near two devices are, not what stands between them; the tree is the smallest that explains it:
// what is joined by PIX hangs on one switch, by PXB on one switch of switches, by PHB on one host bridge.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "topology/bandwidth.h"
#include "topology/matrix.h"

namespace remuda::topology {

enum class NodeKind { host, numa, bridge, pcie_switch, gpu, cpu, nic, fabric_switch };

struct GraphNode {
  NodeKind kind = NodeKind::host;
  std::string id;                  ///< the device's id, the card's name, else kind and number: "numa:0", "switch:2"
  std::string name;                ///< what people call it: "gpu:0", "NUMA node 0", "CPUs 0-19,40-59"
  int parent = -1;                 ///< -1: the host itself, and fabric switches
  std::vector<int> children;       ///< in the order of the inventory
  const Device* device = nullptr;  ///< of a gpu or cpu; of the inventory, which must outlive the graph
  std::vector<int> cores;          ///< of a NUMA node
  Reading<int64_t> memory_bytes;   ///< of a NUMA node

  /// What data meets that turns round here: the pairs of devices whose PCIe path, or memory, goes no further up.
  struct Crossing {
    std::string label;  ///< of the slowest pair
    double low_gbps = 0, high_gbps = 0;
    bool measured = false;  ///< all of them
  };
  std::optional<Crossing> crossing;
};

/// A direct link between two GPUs, or a GPU's links to a fabric switch.
struct GraphEdge {
  int a = 0, b = 0;  ///< positions in Graph::nodes, a < b
  Fabric fabric = Fabric::none;
  std::string label;               ///< "NV12"
  std::optional<PairSpeed> speed;  ///< of a GPU to a switch: what it reaches through it
};

struct Graph {
  std::vector<GraphNode> nodes;  ///< nodes[0] is the host
  std::vector<GraphEdge> edges;  ///< what the tree does not hold
};

/// Deterministic: nodes in the order of their devices.
Graph make_graph(const Inventory& inventory);

/// Part of make_graph: adds the edges, and a fabric switch for each set of GPUs that are joined through one: where the
/// driver says so, or where each would need more links than any GPU has to reach its peers directly.
void add_fabric(const Matrix& matrix, const Inventory& inventory, Graph& graph);

}  // namespace remuda::topology
