#include "topology/bandwidth.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "topology/bandwidth_table.h"

namespace remuda::topology {
namespace {

constexpr int kReferenceGeneration = 4, kReferenceLanes = 16;
constexpr int kNewestGeneration = 8;  // bounds what a recording may claim

struct Lanes {
  int generation = kReferenceGeneration, width = kReferenceLanes;
  bool known = false;

  double scale() const { return std::exp2(generation - kReferenceGeneration) * width / kReferenceLanes; }
};

Lanes lanes_of(const Device& device) {
  const int generation = device.pcie_generation_max.value_or(0);
  const int width = device.status.pcie_width.value_or(device.pcie_width_max.value_or(0));
  if (generation < 1 || generation > kNewestGeneration || width < 1 || width > kReferenceLanes) return {};
  return {generation, width, true};
}

Lanes slower(const Device& a, const Device& b) {
  const Lanes first = lanes_of(a), second = lanes_of(b);
  if (first.known != second.known) return first.known ? first : second;
  return first.scale() <= second.scale() ? first : second;
}

bool is_partitioned(const Device& device) {
  return device.kind == DeviceKind::partition || device.partitioned.value_or(false);
}

LinkTraits traits(const Device& end, std::string_view of, const Link& link) {
  const auto text = [](const Reading<std::string>& reading) {
    return reading.has_value() ? std::string_view(reading.value()) : std::string_view();
  };
  return {.of = of,
          .version = link.fabric_version.value_or(0),
          .chip = text(end.architecture),
          .other_chip = text(end.compute_capability)};
}

std::optional<double> stated_gbps(const Link& link) {
  const double gbps = link.max_gbps.value_or(0);
  return std::isfinite(gbps) && gbps > 0 ? std::optional(gbps) : std::nullopt;
}

PairSpeed fabric_speed(const Device& a, const Device& b, const Link& link) {
  const bool is_nvlink = link.fabric.value() == Fabric::nvlink;
  const char* name = is_nvlink ? "NVLink" : "xGMI";
  const char* of = to_string(link.fabric.value());
  const double each = std::min(link_speeds().gbps(traits(a, of, link)), link_speeds().gbps(traits(b, of, link)));
  const int links = link.fabric_links.value_or(0);
  if (links > 0) {
    const int version = link.fabric_version.value_or(0);
    return {links * each, false,
            fmt::format("{} {} link{}{}{}, {:.4g} GB/s each (assumed)", links, name, links > 1 ? "s" : "",
                        version > 0 ? fmt::format(" of generation {}", version) : "",
                        link.fabric_switched.value_or(false) ? " to a switch" : "", each)};
  }
  if (const auto stated = stated_gbps(link))
    return {*stated, false, fmt::format("{} at the driver's figure of {:.4g} GB/s (assumed)", name, *stated)};
  return {each, false, fmt::format("{} links of unknown number, counted as one of {:.4g} GB/s (assumed)", name, each)};
}

std::string path_text(Path path, bool near) {
  if (path == Path::pcie) return near ? "PCIe within one NUMA node" : "PCIe of unknown class";
  return fmt::format("{} over PCIe{}", to_string(path), path == Path::sys && near ? " within one NUMA node" : "");
}

PairSpeed pcie_speed(const Device& a, const Device& b, const Link& link, Path path) {
  const bool near = are_near(a, b), through_host = path >= Path::phb;
  const double figure = link_speeds().gbps({.of = "pcie", .path = to_string(path), .near = near});
  const Lanes lanes = slower(a, b);
  const double scale = through_host ? std::min(1.0, lanes.scale()) : lanes.scale();
  const std::string words = path_text(path, near);
  const double gbps = figure * scale;
  if (const auto stated = stated_gbps(link); stated && *stated < gbps)
    return {*stated, false, fmt::format("{} at the driver's figure of {:.4g} GB/s (assumed)", words, *stated)};
  if (!lanes.known) return {gbps, false, fmt::format("{}, taken for generation 4 x16 (assumed)", words)};
  if (scale < lanes.scale())
    return {gbps, false,
            fmt::format("{}, generation {} x{}, no faster than generation 4 x16 through the host (assumed)", words,
                        lanes.generation, lanes.width)};
  return {gbps, false, fmt::format("{}, generation {} x{} (assumed)", words, lanes.generation, lanes.width)};
}

PairSpeed staged_speed(const Device& a, const Device& b, const Link& link) {
  const Path direct = link.path.value_or(Path::pcie);
  PairSpeed speed = pcie_speed(a, b, link, std::max(direct, Path::phb));
  speed.gbps /= 2;
  speed.reason = fmt::format("no peer access ({}), so through host memory at half speed: {}",
                             to_string(link.peer_access.value()), speed.reason);
  return speed;
}

std::optional<PairSpeed> memory_speed(const Device& a, const Device& b) {
  const bool both_known = a.numa_node.has_value() && b.numa_node.has_value(), near = are_near(a, b);
  const char* where = near ? " of one NUMA node" : both_known ? " of two NUMA nodes" : "";
  return PairSpeed{link_speeds().gbps({.of = "shared_memory", .near = near}), false,
                   fmt::format("shared memory{} (assumed)", where)};
}

}  // namespace

bool are_near(const Device& a, const Device& b) {
  if (a.numa_node.has_value() && b.numa_node.has_value() && a.numa_node.value() == b.numa_node.value()) return true;
  const bool both_known = a.cores.has_value() && b.cores.has_value();
  return both_known && !a.cores.value().empty() && a.cores.value() == b.cores.value();
}

std::optional<PairSpeed> pair_speed(const Device& a, const Device& b, const Link* link, const MeasuredLink* measured) {
  if (measured && std::isfinite(measured->gbps) && measured->gbps > 0)
    return PairSpeed{measured->gbps, true, fmt::format("{:.4g} GB/s (measured)", measured->gbps)};
  if (is_partitioned(a) || is_partitioned(b)) return std::nullopt;
  if (a.kind == DeviceKind::cpu && b.kind == DeviceKind::cpu) return memory_speed(a, b);
  if (!link) return std::nullopt;
  const bool has_fabric = link->fabric.value_or(Fabric::none) != Fabric::none;
  if (!has_fabric && !link->path.has_value()) return std::nullopt;
  const PeerAccess access = link->peer_access.value_or(PeerAccess::unknown);
  if (access != PeerAccess::ok && access != PeerAccess::unknown) return staged_speed(a, b, *link);
  return has_fabric ? fabric_speed(a, b, *link) : pcie_speed(a, b, *link, link->path.value());
}

std::optional<PairSpeed> pair_speed(const Inventory& inventory, const Device& a, const Device& b) {
  const auto& all = inventory.measured_links;
  const auto measured = std::find_if(all.begin(), all.end(), [&](const MeasuredLink& link) {
    return (link.a == a.id && link.b == b.id) || (link.a == b.id && link.b == a.id);
  });
  return pair_speed(a, b, inventory.link(a.id, b.id), measured == all.end() ? nullptr : &*measured);
}

}  // namespace remuda::topology
