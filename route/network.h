// Network: what joins the devices of a collective, as channels that have a capacity and routes that lead over them.
#pragma once

#include <string>
#include <vector>

#include "device/inventory.h"

namespace remuda::route {

/// What has a capacity of its own: one direction of a link, or memory, whose readers and writers share it.
struct Channel {
  std::string name;       ///< "gpu:0 - gpu:1", "uplink of NUMA node 0"; both directions of a link have one name
  double gbps = 0;        ///< 10^9 bytes/s
  bool measured = false;  ///< or assumed
};

/// The way from one device to another.
struct Route {
  std::string label;             ///< the word for the pair: "NV2", "SYS"
  double gbps = 0;               ///< of one transfer alone; 0: nothing is known, and nothing goes there
  double latency_us = 0;         ///< of the smallest transfer
  bool measured = false;         ///< its speed
  std::vector<size_t> channels;  ///< in the order in which they are passed; each has at least this route's speed
};

struct Network {
  std::vector<std::string> devices;  ///< "gpu:0"
  std::vector<std::string> ids;      ///< of the inventory
  std::vector<Channel> channels;
  std::vector<std::vector<Route>> routes;  ///< [from][to]; the diagonal is not read

  size_t size() const { return devices.size(); }
};

/// The network between devices of a machine, each of them once, from its graph (topology/graph.h):
///   direct links       a channel in each direction, with the pair's speed
///   fabric switch      a channel in each direction between device and switch
///   PCIe and sockets   a channel in each direction of each branch of the tree, which carries what the fastest of the
///                      pairs that pass it reaches
///   host memory        where data is staged there (no peer access) or lives there (a CPU device): the data goes up to
///                      the NUMA node, and its memory is one channel for all that passes. Links
///                      carry twice what staged data is assumed to reach, as it passes each of them half of the time
/// Speeds are those of the pairs (topology/bandwidth.h), latencies measured or those of link_speeds.json.
Network network_of(const Inventory& inventory, const std::vector<const Device*>& devices);

/// {"gpu:0", "gpu:1", "gpu:2", "cpu:1"} -> "gpu:0-2 cpu:1".
std::string label_ranges(const std::vector<std::string>& labels);

}  // namespace remuda::route
