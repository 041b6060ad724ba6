#include "route/network.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "topology/bandwidth_table.h"
#include "topology/graph.h"
#include "topology/matrix.h"

namespace remuda::route {
namespace {

using topology::Graph;
using topology::NodeKind;

class NetworkBuilder {
 public:
  NetworkBuilder(const Inventory& inventory, const std::vector<const Device*>& devices)
      : inventory_(inventory),
        graph_(topology::make_graph(inventory)),
        matrix_(topology::make_matrix(inventory, devices)) {
    for (const Device* device : devices) {
      network_.devices.push_back(device->label());
      network_.ids.push_back(device->id);
      nodes_.push_back(node_of(*device));
    }
  }

  Network build() {
    const size_t n = network_.size();
    network_.routes.assign(n, std::vector<Route>(n));
    for (size_t from = 0; from < n; ++from)
      for (size_t to = 0; to < n; ++to)
        if (from != to) network_.routes[from][to] = make_route(from, to);
    return std::move(network_);
  }

 private:
  /// A partition stands where its GPU does.
  int node_of(const Device& device) const {
    const std::string& id = device.kind == DeviceKind::partition ? device.parent : device.id;
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      if (graph_.nodes[node].device && graph_.nodes[node].device->id == id) return static_cast<int>(node);
    return 0;
  }

  Route make_route(size_t from, size_t to) {
    const auto& [label, speed] = matrix_.pairs[from][to];
    Route route{.label = label};
    if (!speed) return route;
    route.gbps = speed->gbps;
    route.measured = speed->measured;
    const bool through_memory = is_through_memory(from, to);
    std::vector<size_t> fabric = through_memory ? std::vector<size_t>{} : fabric_way(from, to, *speed);
    const bool is_fabric = !fabric.empty();
    route.channels = is_fabric ? std::move(fabric) : tree_way(from, to, through_memory, link_speed(from, to, *speed));
    route.latency_us = latency_us(from, to, through_memory, is_fabric);
    return route;
  }

  const Device& device(size_t number) const { return *matrix_.devices[number]; }

  bool is_through_memory(size_t from, size_t to) const {
    if (device(from).kind == DeviceKind::cpu || device(to).kind == DeviceKind::cpu) return true;
    const Link* link = inventory_.link(device(from).id, device(to).id);
    const PeerAccess access = link ? link->peer_access.value_or(PeerAccess::unknown) : PeerAccess::unknown;
    return access != PeerAccess::ok && access != PeerAccess::unknown;
  }

  /// What the pair says of the links it passes. A copy in and a copy out follow each other, so that one that is staged
  /// is taken to be half as fast as its links (topology/bandwidth.h).
  topology::PairSpeed link_speed(size_t from, size_t to, topology::PairSpeed speed) const {
    const bool both_gpus = device(from).kind == DeviceKind::gpu && device(to).kind == DeviceKind::gpu;
    if (both_gpus && !speed.measured && is_through_memory(from, to)) speed.gbps *= 2;
    return speed;
  }

  double latency_us(size_t from, size_t to, bool through_memory, bool is_fabric) const {
    const auto& [a, b] = std::pair(device(from).id, device(to).id);
    for (const MeasuredLink& link : inventory_.measured_links)
      if (((link.a == a && link.b == b) || (link.a == b && link.b == a)) && link.latency_us.value_or(0) > 0)
        return link.latency_us.value();
    const bool both_cpus = device(from).kind == DeviceKind::cpu && device(to).kind == DeviceKind::cpu;
    const Link* link = inventory_.link(a, b);
    return topology::link_speeds().latency_us(both_cpus        ? "shared_memory"
                                              : through_memory ? "staged"
                                              : is_fabric      ? to_string(link->fabric.value())
                                                               : "pcie");
  }

  /// Empty where no direct links join them, and no switch.
  std::vector<size_t> fabric_way(size_t from, size_t to, const topology::PairSpeed& speed) {
    const Link* link = inventory_.link(device(from).id, device(to).id);
    if (!link || link->fabric.value_or(Fabric::none) == Fabric::none) return {};
    const int a = nodes_[from], b = nodes_[to];
    for (const auto& edge : graph_.edges)
      if (edge.a == std::min(a, b) && edge.b == std::max(a, b))
        return {channel(
            a, b, fmt::format("{} - {}", network_.devices[std::min(from, to)], network_.devices[std::max(from, to)]),
            speed)};
    const int fabric_switch = switch_of(a);
    const std::string& name = graph_.nodes[static_cast<size_t>(fabric_switch)].name;
    return {channel(a, fabric_switch, fmt::format("{} - {}", network_.devices[from], name), speed),
            channel(fabric_switch, b, fmt::format("{} - {}", network_.devices[to], name), speed)};
  }

  int switch_of(int node) const {
    for (const auto& edge : graph_.edges)
      if (edge.a == node && graph_.nodes[static_cast<size_t>(edge.b)].kind == NodeKind::fabric_switch) return edge.b;
    return 0;
  }

  std::vector<size_t> tree_way(size_t from, size_t to, bool through_memory, const topology::PairSpeed& speed) {
    std::vector<int> up = way_up(nodes_[from]), down = way_up(nodes_[to]);
    const auto is_top = [&](int node) {
      const NodeKind kind = graph_.nodes[static_cast<size_t>(node)].kind;
      return !through_memory || kind == NodeKind::numa || kind == NodeKind::host;
    };
    const auto meeting =
        std::ranges::find_if(up, [&](int node) { return std::ranges::find(down, node) != down.end() && is_top(node); });
    const auto home = std::ranges::find_if(up, is_top);
    std::vector<size_t> way;
    for (auto node = up.begin(); node != meeting; ++node) {
      way.push_back(channel(*node, *(node + 1), branch_name(*node), speed));
      if (through_memory && node + 1 == home) way.push_back(memory(*home, speed));
    }
    for (auto node = std::ranges::find(down, *meeting); node != down.begin(); --node)
      way.push_back(channel(*node, *(node - 1), branch_name(*(node - 1)), speed));
    if (way.empty())  // parts of one GPU
      way.push_back(channel(-1 - static_cast<int>(from), -1 - static_cast<int>(to),
                            fmt::format("{} - {}", network_.devices[from], network_.devices[to]), speed));
    return way;
  }

  std::vector<int> way_up(int node) const {
    std::vector<int> way;
    for (; node >= 0; node = graph_.nodes[static_cast<size_t>(node)].parent) way.push_back(node);
    return way;
  }

  /// Nodes that have no name of their own are known by the devices below them.
  std::string name_of(int number) const {
    const topology::GraphNode& node = graph_.nodes[static_cast<size_t>(number)];
    const bool is_nameless = node.kind == NodeKind::numa && node.id.starts_with("place:") && node.cores.empty();
    if (!is_nameless && node.kind != NodeKind::pcie_switch && node.kind != NodeKind::bridge) return node.name;
    std::vector<std::string> below;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto way = way_up(nodes_[i]);
      if (std::ranges::find(way, number) != way.end()) below.push_back(network_.devices[i]);
    }
    return fmt::format("the {} of {}", is_nameless ? "NUMA node" : node.name, label_ranges(below));
  }

  /// The link from a node to what is above it.
  std::string branch_name(int node) const { return fmt::format("uplink of {}", name_of(node)); }

  size_t channel(int from, int to, std::string name, const topology::PairSpeed& speed) {
    const auto [at, is_new] = channels_.emplace(std::pair(from, to), network_.channels.size());
    if (is_new) network_.channels.push_back({.name = std::move(name)});
    Channel& channel = network_.channels[at->second];
    if (speed.gbps > channel.gbps) {
      channel.gbps = speed.gbps;
      channel.measured = speed.measured;
    }
    return at->second;
  }

  size_t memory(int node, const topology::PairSpeed& speed) {
    const double assumed = topology::link_speeds().gbps({.of = "host_memory"});
    return channel(node, node, fmt::format("memory of {}", name_of(node)),
                   speed.gbps > assumed ? speed : topology::PairSpeed{.gbps = assumed});
  }

  const Inventory& inventory_;
  const Graph graph_;
  const topology::Matrix matrix_;
  Network network_;
  std::vector<int> nodes_;  ///< of each device, in the graph
  std::map<std::pair<int, int>, size_t> channels_;
};

}  // namespace

Network network_of(const Inventory& inventory, const std::vector<const Device*>& devices) {
  return NetworkBuilder(inventory, devices).build();
}

std::string label_ranges(const std::vector<std::string>& labels) {
  const auto parted = [](const std::string& label) -> std::pair<std::string, std::optional<int>> {
    const size_t colon = label.rfind(':');
    int number = 0;
    const char* end = label.data() + label.size();
    if (colon == std::string::npos || std::from_chars(label.data() + colon + 1, end, number).ptr != end)
      return {label, std::nullopt};
    return {label.substr(0, colon), number};
  };
  std::string text;
  for (size_t i = 0, next = 0; i < labels.size(); i = next) {
    const auto [kind, first] = parted(labels[i]);
    for (next = i + 1; first && next < labels.size(); ++next)
      if (parted(labels[next]) != std::pair(kind, std::optional(*first + static_cast<int>(next - i)))) break;
    if (!first) next = i + 1;
    text += (i > 0 ? " " : "") + labels[i];
    if (next > i + 1) text += fmt::format("-{}", *parted(labels[next - 1]).second);
  }
  return text;
}

}  // namespace remuda::route
