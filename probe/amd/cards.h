// From KFD nodes to GPUs, partitions and links. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/inventory.h"
#include "probe/amd/kfd.h"

namespace remuda::probe::amd {

/// One GPU, and its KFD nodes: one for the whole GPU, or one for each partition.
struct Card {
  std::string id;   ///< its PCI address; kfd:N where the driver reports none
  std::string pci;  ///< empty where the driver reports none
  std::vector<const KfdNode*> nodes;
};

/// Nodes belong to one card when they have the same PCI address, or the same unique id and addresses that differ only
/// in the function. In the order of their first nodes; `kfd` must outlive them.
std::vector<Card> cards_of(const Kfd& kfd);

/// "kfd:2", used where there is no better name.
std::string node_id(const KfdNode& node);

/// What KFD reports about a GPU, or, with one node, about a partition: fills readings that have no value yet. Memory
/// and multiprocessors are the sum over its nodes.
void read_card(const Card& card, Device& device);

/// The driver's unique id as its tools print it: GPU-1901ead3a2ecd4a6.
std::string uuid_text(uint64_t unique_id);
/// "1901ead3a2ecd4a6", as the driver writes it; nothing for 0, and for a text that is no such number.
std::optional<uint64_t> parse_unique_id(std::string_view text);
/// The unique id that all nodes of the card report; 0 when they report none, or different ones.
uint64_t unique_id_of(const Card& card);

/// The position of the nearest CPU node among all CPU nodes, which is the kernel's NUMA node; nothing when no link to a
/// CPU is reported.
std::optional<int> nearest_numa_node(const Kfd& kfd, const KfdNode& gpu);

/// Which device a node became.
struct Place {
  std::string id;
  size_t card = 0;       ///< index of its GPU
  bool is_part = false;  ///< it is a partition
};

/// Each pair of the nodes in `places` once. Leaves the path between whole GPUs to the probe of the PCI bus.
std::vector<Link> links_of(const Kfd& kfd, const std::map<int, Place>& places);

}  // namespace remuda::probe::amd
